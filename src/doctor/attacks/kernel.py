# System calls that open the kernel itself. The arguments are wrong on purpose: where the filter lets a call through,
# the kernel complains about them by another error.
import ctypes
import errno
import platform

through = []
libc = ctypes.CDLL(None, use_errno=True)
x86 = platform.machine() == "x86_64"
numbers = {  # x86_64, aarch64
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "swapon": (167, 224),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "settimeofday": (164, 170),
    "sethostname": (170, 161),
}
for name, (on_x86, on_arm) in numbers.items():
    ctypes.set_errno(0)
    answer = libc.syscall(on_x86 if x86 else on_arm, -1, -1, -1, -1, -1, -1)
    if answer >= 0 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS):
        through.append(f"{name}: {errno.errorcode.get(ctypes.get_errno(), 'done')}")
return through
