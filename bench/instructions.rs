//! Does one kernel on fixed input, for callgrind to count: `scripts/instructions`. Without a name it lists them all.

use std::process::ExitCode;

use radmm_bench::KERNELS;

fn main() -> ExitCode {
    let Some(name) = std::env::args().nth(1) else {
        for kernel in &KERNELS {
            println!("{}", kernel.name);
        }
        return ExitCode::SUCCESS;
    };
    let Some(kernel) = KERNELS.iter().find(|kernel| kernel.name == name) else {
        eprintln!("error: no kernel is called {name}");
        return ExitCode::from(2);
    };
    (kernel.run)(&counted);
    ExitCode::SUCCESS
}

/// Callgrind counts from its beginning to its end, and nothing else.
#[inline(never)]
fn counted(work: &mut dyn FnMut()) {
    work();
}
