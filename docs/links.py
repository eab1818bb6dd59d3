"""Check the links of the sources and of the built pages, and find resources of the network.

python docs/links.py docs/_build/html

Sphinx's linkcheck uses the network, and does not check anchors or fetched resources.
"""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[1]
PAGES = ("*.md", "docs/**/*.md", "benchmarks/*.md")
# The attributes whose resources a browser fetches without a click.
FETCHED = {
    "script": "src", "img": "src", "iframe": "src", "source": "src", "embed": "src",
    "object": "data", "video": "src", "audio": "src", "image": "href", "use": "href",
}  # fmt: skip
FOLLOWED_RELATIONS = {"next", "prev", "search", "index", "canonical", "author", "license", "help"}
REMOTE = re.compile(r"^(?:https?:)?//")
REMOTE_STYLE = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]+)""")


class Page(HTMLParser):
    """The links, targets and fetched resources of a built page."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.targets: set[str] = set()
        self.fetched: list[str] = []
        text = file.read_text(encoding="utf-8")
        self.feed(text)
        self.fetched += REMOTE_STYLE.findall(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record the links, the targets and the fetched resources of a tag."""
        attributes = {name: value or "" for name, value in attrs}
        self.targets |= {attributes[name] for name in ("id", "name") if name in attributes}
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        elif tag == "link" and not set(attributes.get("rel", "").split()) & FOLLOWED_RELATIONS:
            self.fetched.append(attributes.get("href", ""))
        elif tag in FETCHED:
            self.fetched.append(attributes.get(FETCHED[tag], ""))


def source_faults() -> Iterator[str]:
    """Yield the links between the sources of pages whose file is missing."""
    for page in sorted(page for pattern in PAGES for page in ROOT.glob(pattern)):
        if "_build" in page.parts:
            continue
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text()):
            if not (page.parent / target).exists():
                yield f"{page.relative_to(ROOT)}: {target} is no file"


def built_faults(site: Path) -> Iterator[str]:
    """Yield the broken links of built pages, and the resources on other hosts."""
    pages = {file: Page(file) for file in sorted(site.rglob("*.html"))}
    if not pages:
        yield f"{site}: no page"
    for file, page in pages.items():
        name = file.relative_to(site)
        for address in page.fetched:
            if REMOTE.match(address):
                yield f"{name}: fetches {address}"
            elif address and not address.startswith(("data:", "#")) and not _local(file, address):
                yield f"{name}: fetches {address}, which is no file"
        for link in page.links:
            if (fault := _link_fault(pages, file, link)) is not None:
                yield f"{name}: {fault}"
    for style in site.rglob("*.css"):
        for address in REMOTE_STYLE.findall(style.read_text(encoding="utf-8")):
            yield f"{style.relative_to(site)}: fetches {address}"


def _local(file: Path, address: str) -> bool:
    return (file.parent / unquote(urlsplit(address).path)).exists()


def _link_fault(pages: dict[Path, Page], file: Path, link: str) -> str | None:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    if not target.exists():
        return f"{link} leads to no file"
    known = pages[target].targets if target in pages else {unquote(parts.fragment)}
    if parts.fragment and unquote(parts.fragment) not in known:
        return f"{link} leads to no place on its page"
    return None


def main() -> int:
    """Print every fault."""
    site = Path(sys.argv[1]).resolve()
    faults = [*source_faults(), *built_faults(site)]
    for fault in faults:
        print(fault, file=sys.stderr)
    if not faults:
        print(f"{len(list(site.rglob('*.html')))} pages: every link leads somewhere, all is local")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
