/* SPDX-License-Identifier: Apache-2.0
 *
 * What SUMO may do outside the simulation while it works on a scenario: read plain files and folders, and write the
 * files that are allowed. A scenario names files in many places (options, additional files, parameters of vehicles and
 * signals, and more with each version of SUMO), so the kernel stops every call and not a list of them: a seccomp filter
 * sends what opens, connects, removes or executes to a handler (SIGSYS). There
 *
 *   reading        passes for plain files and folders; a pipe, a socket or a device is refused, and nothing waits for one
 *   writing        passes for files that are allowed; everything else goes to /dev/null, and the path is noted. One process
 *                  at a time writes to a file: it holds a lock, and what others write goes to /dev/null
 *   all the rest   (sockets, other programs, removing and renaming) is refused
 *
 * Limits of this: it holds data that others made, not code that others made. A filter stays with its thread, and with
 * what that thread starts, for good. Where the process only serves this environment, calls run in the caller's thread;
 * elsewhere in a thread of their own, so that the process keeps its rights. Source: seccomp(2), the kernel's
 * Documentation/userspace-api/seccomp_filter.rst. Threads: one caller.
 */
#ifndef DTRAIN_ENV_SUMO_GUARD_HPP
#define DTRAIN_ENV_SUMO_GUARD_HPP

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

class guard
{
  public:
    /* Paths as SUMO says them, whole; and those that begin so. */
    static void allow(const std::vector<std::string> &exactly, const std::vector<std::string> &from, bool all)
    {
        rules &r = of_process();
        r.exactly = exactly;
        r.from = from;
        r.all = all;
        r.noted.clear();
        r.noted.reserve(room);
    }

    /* What was kept from SUMO since allow: paths, and kinds of calls. */
    static const std::vector<std::string> &noted()
    {
        return of_process().noted;
    }

    /* Runs f, which throws nothing, under the guard. Throws where this machine cannot have one. */
    static void run(const std::function<void()> &f)
    {
        rules &r = of_process();
        if (r.is_inline) {
            if (!is_entry()) {
                const std::string wrong = install();
                refuse(r, wrong);
                is_entry() = wrong.empty();
            }
            is_outside() = false;
            f();
            is_outside() = true;
            return;
        }
        std::unique_lock<std::mutex> lock(r.mutex);
        if (!r.thread.joinable()) {
            r.state = IDLE;
            r.thread = std::thread(serve);
        }
        r.work = &f;
        r.state = ASKED;
        r.changed.notify_all();
        r.changed.wait(lock, [&] { return r.state == IDLE; });
        if (!r.wrong.empty()) {
            refuse(r, r.wrong);
            f();
        }
    }

    /* This process does nothing but SUMO. */
    static void run_inline()
    {
        of_process().is_inline = true;
    }

    /* Ends the thread, where there is one. */
    static void stop()
    {
        rules &r = of_process();
        if (r.thread.joinable()) {
            {
                const std::lock_guard<std::mutex> lock(r.mutex);
                r.state = ENDING;
                r.changed.notify_all();
            }
            r.thread.join();
            r.wrong.clear();
        }
    }

  private:
    static constexpr size_t room = 8, longest = 256; /* of what is noted */
    static constexpr unsigned pass = 0x64747261;     /* sixth argument of the handler's own calls */
    enum { IDLE, ASKED, ENDING };

    struct rules {
        std::vector<std::string> exactly, from, noted;
        bool all = false, is_inline = false;
        std::thread thread;
        std::mutex mutex;
        std::condition_variable changed;
        int state = IDLE;
        const std::function<void()> *work = nullptr;
        std::string wrong;
    };
    static rules &of_process()
    {
        static rules *const r = new rules; /* for good: at exit its thread may still wait */
        return *r;
    }

    /* Without a filter SUMO runs only for those who let it write all that it wants to. */
    static void refuse(const rules &r, const std::string &wrong)
    {
        if (!wrong.empty() && !r.all) {
            throw std::runtime_error(wrong);
        }
    }

    /* A thread under the filter is held to the rules unless it says otherwise: SUMO starts threads, too. */
    static bool &is_outside()
    {
        static thread_local bool is __attribute__((tls_model("initial-exec"))) = false;
        return is;
    }
    static bool &is_entry()
    {
        static thread_local bool is __attribute__((tls_model("initial-exec"))) = false;
        return is;
    }

    static void serve()
    {
        rules &r = of_process();
        std::unique_lock<std::mutex> lock(r.mutex);
        r.wrong = install();
        for (;;) {
            r.changed.wait(lock, [&] { return r.state != IDLE; });
            if (r.state == ENDING) {
                return;
            }
            if (r.wrong.empty()) {
                lock.unlock();
                (*r.work)();
                lock.lock();
            }
            r.state = IDLE;
            r.changed.notify_all();
        }
    }

    /* ---- the handler ------------------------------------------------------------------------------------------- */

    static long call(long nr, const long *a)
    {
        const long is = syscall(nr, a[0], a[1], a[2], a[3], a[4], static_cast<long>(pass));
        return is < 0 ? -errno : is;
    }

    static long open_at(long folder, const char *path, long flags, long mode)
    {
        const long a[] = {folder, reinterpret_cast<long>(path), flags, mode, 0};
        return call(SYS_openat, a);
    }

    /* In the thread that SUMO runs in, at a call of its own: memory may be taken. */
    static void note(const char *what)
    {
        rules &r = of_process();
        const std::lock_guard<std::mutex> lock(notes());
        for (const std::string &old : r.noted) {
            if (old.compare(0, longest, what, strnlen(what, longest)) == 0) {
                return;
            }
        }
        if (r.noted.size() < room) {
            r.noted.emplace_back(what, strnlen(what, longest));
        }
    }
    static std::mutex &notes()
    {
        static std::mutex m;
        return m;
    }

    static long open_to_read(long folder, const char *path, long flags)
    {
        struct stat st = {};
        const long fd = open_at(folder, path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
        if (fd < 0) {
            return fd;
        }
        const bool is_known = fstat(static_cast<int>(fd), &st) == 0;
        const bool is_harmless = S_ISCHR(st.st_mode) && major(st.st_rdev) == 1 &&
                                 (minor(st.st_rdev) == 3 || minor(st.st_rdev) == 9); /* null, urandom */
        if (is_known && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode) || is_harmless)) {
            return fd;
        }
        close(static_cast<int>(fd));
        note(path);
        return -EACCES;
    }

    static bool is_allowed(const char *path)
    {
        const rules &r = of_process();
        for (const std::string &one : r.from) {
            if (strncmp(path, one.c_str(), one.size()) == 0) {
                return true;
            }
        }
        return r.all;
    }

    static long open_to_write(long folder, const char *path, long flags, long mode)
    {
        for (const std::string &one : of_process().exactly) {
            if (one == path) {
                return open_at(folder, path, flags, mode);
            }
        }
        if (strcmp(path, "/dev/null") != 0 && is_allowed(path)) {
            const long fd = open_at(folder, path, (flags & ~O_TRUNC) | O_NONBLOCK | O_NOCTTY, mode);
            if (fd < 0 || flock(static_cast<int>(fd), LOCK_EX | LOCK_NB) == 0) {
                (void)(fd >= 0 && (flags & O_TRUNC) != 0 && ftruncate(static_cast<int>(fd), 0) != 0);
                return fd;
            }
            close(static_cast<int>(fd)); /* another instance writes it */
        } else if (strcmp(path, "/dev/null") != 0) {
            note(path);
        }
        return (flags & O_ACCMODE) == O_WRONLY ? open_at(folder, "/dev/null", O_WRONLY | O_CLOEXEC, 0) : -EACCES;
    }

    static long open_file(long folder, const char *path, long flags, long mode)
    {
        const bool is_reading = (flags & O_ACCMODE) == O_RDONLY && (flags & (O_CREAT | O_TRUNC)) == 0;
        return is_reading ? open_to_read(folder, path, flags) : open_to_write(folder, path, flags, mode);
    }

    static long decide(long nr, const long *a)
    {
        switch (nr) {
        case SYS_openat:
            return open_file(a[0], reinterpret_cast<const char *>(a[1]), a[2], a[3]);
#ifdef SYS_open
        case SYS_open:
            return open_file(AT_FDCWD, reinterpret_cast<const char *>(a[0]), a[1], a[2]);
        case SYS_creat:
            return open_file(AT_FDCWD, reinterpret_cast<const char *>(a[0]), O_CREAT | O_WRONLY | O_TRUNC, a[1]);
#endif
        case SYS_socket:
        case SYS_connect:
        case SYS_bind:
            note("a connection");
            return -EACCES;
        case SYS_execve:
        case SYS_execveat:
            note("another program");
            return -EACCES;
#ifdef SYS_openat2
        case SYS_openat2:
            return -ENOSYS; /* as of an older kernel */
#endif
        default:
            if (of_process().all) {
                return call(nr, a);
            }
            note("changes of files");
            return -EACCES;
        }
    }

    static void handle(int, siginfo_t *info, void *context)
    {
        const int before = errno;
        auto *c = static_cast<ucontext_t *>(context);
#if defined(__x86_64__)
        const auto *g = c->uc_mcontext.gregs;
        const long a[] = {g[REG_RDI], g[REG_RSI], g[REG_RDX], g[REG_R10], g[REG_R8]};
        const long is = is_outside() ? call(info->si_syscall, a) : decide(info->si_syscall, a);
        c->uc_mcontext.gregs[REG_RAX] = is;
#elif defined(__aarch64__)
        const auto *g = c->uc_mcontext.regs;
        const long a[] = {static_cast<long>(g[0]), static_cast<long>(g[1]), static_cast<long>(g[2]),
                          static_cast<long>(g[3]), static_cast<long>(g[4])};
        const long is = is_outside() ? call(info->si_syscall, a) : decide(info->si_syscall, a);
        c->uc_mcontext.regs[0] = static_cast<unsigned long long>(is);
#endif
        errno = before;
    }

    /* ---- the filter -------------------------------------------------------------------------------------------- */

    /* "", or why there is none */
    static std::string install()
    {
#if defined(__x86_64__)
        static constexpr unsigned machine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
        static constexpr unsigned machine = AUDIT_ARCH_AARCH64;
#else
        static constexpr unsigned machine = 0;
#endif
        static const long trapped[] = {
            SYS_openat,   SYS_socket,    SYS_connect,  SYS_bind,      SYS_execve,  SYS_execveat,
            SYS_unlinkat, SYS_renameat2, SYS_linkat,   SYS_symlinkat, SYS_mkdirat, SYS_mknodat,
            SYS_truncate, SYS_fchmodat,  SYS_fchownat,
#ifdef SYS_openat2
            SYS_openat2,
#endif
#ifdef SYS_renameat
            SYS_renameat,
#endif
#ifdef SYS_open
            SYS_open,     SYS_creat,     SYS_unlink,   SYS_rename,    SYS_link,    SYS_symlink,
            SYS_mkdir,    SYS_rmdir,     SYS_mknod,    SYS_chmod,     SYS_chown,   SYS_lchown,
#endif
        };
        struct sigaction act = {};
        sigset_t only;
        act.sa_sigaction = handle;
        act.sa_flags = SA_SIGINFO | SA_RESTART;
        sigemptyset(&act.sa_mask);
        sigemptyset(&only);
        sigaddset(&only, SIGSYS);
        std::vector<sock_filter> f = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, machine, 1, 0),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[5])),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, pass, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        };
        for (const long nr : trapped) {
            f.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(nr), 0, 1));
            f.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP));
        }
        f.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
        struct sock_fprog program = {static_cast<unsigned short>(f.size()), f.data()};
        (void)is_outside(); /* these exist before the handler needs them */
        (void)notes();
        if (machine == 0 || sigaction(SIGSYS, &act, nullptr) != 0 ||
            pthread_sigmask(SIG_UNBLOCK, &only, nullptr) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
            (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) != 0 &&
             syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0)) {
            return std::string(
                       "this machine cannot keep SUMO from writing the files that a scenario names (seccomp: ") +
                   (machine == 0 ? "another processor" : strerror(errno)) +
                   "); if the scenario is yours, set env_sumo.outputs = true";
        }
        return "";
    }
};

#endif
