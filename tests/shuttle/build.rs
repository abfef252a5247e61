fn main() {
    println!("cargo::rustc-check-cfg=cfg(fuzzing)");
    println!("cargo::rustc-check-cfg=cfg(shuttle)");
    println!("cargo::rustc-cfg=shuttle");
}
