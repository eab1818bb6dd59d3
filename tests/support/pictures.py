"""Explanations of generated calls, and the elements of their pictures."""

import xml.etree.ElementTree as ET

import gatherum

NAMESPACE = "{http://www.w3.org/2000/svg}"


def explanation_of(call):
    """Explain a call of the strategies or of the cases."""
    return gatherum.explain(call.op, *call.args, **call.kwargs)


def parse(text):
    """Return the root element of a picture."""
    return ET.fromstring(text)


def texts_of(text):
    """Return the texts of a picture."""
    return [element.text for element in parse(text).iter(f"{NAMESPACE}text")]
