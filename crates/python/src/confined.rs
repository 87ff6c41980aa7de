//! This process kept from files and from the network, for what is measured on behalf of others.
//!
//! Linux does both without root: Landlock says which files a process and its children may open, and a
//! seccomp filter refuses new sockets. Neither can be undone, and what a process has open stays open.

/// From now on this thread and all that it starts read files below `readable` alone, write and read
/// below `writable`, and open no socket. A path that is not there allows nothing.
///
/// Called before other threads are started: those that run already keep their rights.
///
/// # Errors
/// That the system cannot do it; some of it may be in force then.
#[cfg(target_os = "linux")]
pub fn confine(readable: &[String], writable: &[String]) -> Result<(), String> {
    let status = files(readable, writable).map_err(|e| e.to_string())?;
    if status == landlock::RulesetStatus::NotEnforced {
        return Err("this Linux has no Landlock (5.13 and later have it, where it is not switched off)".to_owned());
    }
    let filter = no_sockets().map_err(|e| e.to_string())?;
    seccompiler::apply_filter(&filter).map_err(|e| e.to_string())
}

#[cfg(not(target_os = "linux"))]
pub fn confine(_: &[String], _: &[String]) -> Result<(), String> {
    Err("only Linux lets a program be confined to some files without root".to_owned())
}

/// The newest rights that are asked for; a kernel that knows fewer of them enforces those.
#[cfg(target_os = "linux")]
const ABI: landlock::ABI = landlock::ABI::V6;

#[cfg(target_os = "linux")]
fn files(readable: &[String], writable: &[String]) -> Result<landlock::RulesetStatus, landlock::RulesetError> {
    use landlock::{Access, AccessFs, Ruleset, RulesetAttr, RulesetCreatedAttr, Scope, path_beneath_rules};
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(ABI))?
        .scope(Scope::from_all(ABI))?
        .create()?
        .add_rules(path_beneath_rules(readable, AccessFs::from_read(ABI)))?
        .add_rules(path_beneath_rules(writable, AccessFs::from_all(ABI)))?
        .restrict_self()?;
    Ok(status.ruleset)
}

/// A filter for which each new socket, and each queue by which one could be opened unseen, is an
/// operation without permission.
#[cfg(target_os = "linux")]
fn no_sockets() -> Result<seccompiler::BpfProgram, seccompiler::BackendError> {
    use seccompiler::{SeccompAction, SeccompFilter};
    let refused = [libc::SYS_socket, libc::SYS_io_uring_setup];
    SeccompFilter::new(
        refused.into_iter().map(|call| (call, Vec::new())).collect(),
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM.unsigned_abs()),
        std::env::consts::ARCH.try_into()?,
    )?
    .try_into()
}
