//! Links the C library in the folder that `GATHERUM_LIBRARY_DIR` names, or that pkg-config prints.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=GATHERUM_LIBRARY_DIR");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    let folder = library_folder();
    println!("cargo:rerun-if-changed={}", folder.display());
    println!("cargo:rustc-link-search=native={}", folder.display());
    println!("cargo:libdir={}", folder.display()); // DEP_GATHERUM_LIBDIR in build scripts that depend on this one
    let shared = ["libgatherum.so", "libgatherum.dylib", "gatherum.dll"];
    let apple = env::var("CARGO_CFG_TARGET_VENDOR").is_ok_and(|vendor| vendor == "apple");
    if shared.iter().any(|name| folder.join(name).exists()) {
        println!("cargo:rustc-link-lib=dylib=gatherum");
        if env::var_os("CARGO_CFG_UNIX").is_some() {
            println!("cargo:rustc-link-arg=-Wl,-rpath,{}", folder.display());
        }
    } else if folder.join("libgatherum.a").exists() {
        println!("cargo:rustc-link-lib=static=gatherum");
        println!("cargo:rustc-link-lib=dylib={}", if apple { "c++" } else { "stdc++" });
    } else {
        panic!("no library gatherum in {}", folder.display());
    }
}

fn library_folder() -> PathBuf {
    if let Some(folder) = env::var_os("GATHERUM_LIBRARY_DIR") {
        return folder.into();
    }
    let printed = Command::new("pkg-config").args(["--variable=libdir", "gatherum"]).output();
    match printed {
        Ok(output) if output.status.success() => {
            PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
        }
        _ => panic!(
            "set GATHERUM_LIBRARY_DIR to the folder of the library gatherum, \
             or PKG_CONFIG_PATH to the folder of gatherum.pc"
        ),
    }
}
