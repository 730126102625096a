// libfaultydisk.so: a disk that fails on purpose, under any program (LD_PRELOAD).
//
//   FAULTYDISK_PATH     files whose path contains this text are affected
//   FAULTYDISK_CONTROL  file with the faults; read again when it changes, so that a test can switch them
//   FAULTYDISK_FAULTS   the faults, if there is no such file
//
// Faults are separated by commas: CALL:ACTION[:every=N][:after=BYTES][:once], where
//   CALL    open, write, sync, rename, truncate
//   ACTION  an error (EIO, ENOSPC, EINTR, EDQUOT, EROFS), slow=MILLISECONDS, or (write) short=BYTES
//   every   only every Nth call
//   after   only once this many bytes have been written since the fault was set; the write before is cut
//   short there once    only one call
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

struct Fault {
    std::string call;
    int error = 0;
    long slow_ms = 0;
    std::size_t short_bytes = 0;
    unsigned long every = 1;
    long long after = -1;
    bool once = false;
    unsigned long calls = 0;
    bool spent = false;
};

/// How one call fails or slows down.
struct Order {
    int error = 0;
    long slow_ms = 0;
    std::size_t most = static_cast<std::size_t>(-1);  ///< bytes of a write
};

template <class Function>
Function real(const char* name) {
    return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

Fault parse(const std::string& text) {
    static const std::map<std::string, int> errors{
        {"EIO", EIO}, {"ENOSPC", ENOSPC}, {"EINTR", EINTR}, {"EDQUOT", EDQUOT}, {"EROFS", EROFS}};
    Fault fault;
    std::istringstream words(text);
    std::getline(words, fault.call, ':');
    for (std::string word; std::getline(words, word, ':');) {
        const std::size_t is = word.find('=');
        const long long value = is == std::string::npos ? 0 : std::atoll(word.c_str() + is + 1);
        const std::string name = word.substr(0, is);
        if (errors.count(name) != 0) fault.error = errors.at(name);
        if (name == "slow") fault.slow_ms = static_cast<long>(value);
        if (name == "short") fault.short_bytes = static_cast<std::size_t>(value);
        if (name == "every") fault.every = static_cast<unsigned long>(std::max(value, 1LL));
        if (name == "after") fault.after = value;
        if (name == "once") fault.once = true;
    }
    return fault;
}

class Disk {
  public:
    /// `bytes`: of a write.
    Order order(const char* call, const std::string& path, std::size_t bytes = 0) {
        const char* const part = std::getenv("FAULTYDISK_PATH");
        if (part == nullptr || path.find(part) == std::string::npos) return {};
        const std::lock_guard lock(mutex_);
        refresh();
        Order order;
        for (Fault& fault : faults_) {
            if (fault.call != call || fault.spent || ++fault.calls % fault.every != 0) continue;
            const long long room = fault.after < 0 ? 0 : fault.after - written_;
            if (room > 0) {
                order.most = std::min(order.most, static_cast<std::size_t>(room));
                continue;
            }
            fault.spent = fault.once;
            if (fault.error != 0) order.error = fault.error;
            order.slow_ms += fault.slow_ms;
            if (fault.short_bytes != 0) order.most = std::min(order.most, fault.short_bytes);
        }
        if (order.error == 0) written_ += static_cast<long long>(std::min(bytes, order.most));
        return order;
    }

  private:
    void refresh() {
        const char* const name = std::getenv("FAULTYDISK_CONTROL");
        struct stat now {};
        if (name == nullptr || ::stat(name, &now) != 0) {
            const char* const text = std::getenv("FAULTYDISK_FAULTS");
            if (!std::exchange(read_, true) && text != nullptr) set(text);
            return;
        }
        if (now.st_ino == inode_ && now.st_mtim.tv_nsec == changed_.tv_nsec &&
            now.st_mtim.tv_sec == changed_.tv_sec)
            return;
        inode_ = now.st_ino;
        changed_ = now.st_mtim;
        std::ifstream in(name);
        std::string text;
        std::getline(in, text);
        set(text);
    }
    void set(const std::string& text) {
        faults_.clear();
        written_ = 0;
        std::istringstream parts(text);
        for (std::string part; std::getline(parts, part, ',');)
            faults_.push_back(parse(part));
    }

    std::mutex mutex_;
    std::vector<Fault> faults_;
    long long written_ = 0;
    bool read_ = false;
    ino_t inode_ = 0;
    timespec changed_{};
};

Order order_for(const char* call, const std::string& path, std::size_t bytes = 0) {
    static Disk* const disk = new Disk;  // outlives every caller
    const Order order = disk->order(call, path, bytes);
    if (order.slow_ms > 0) {
        const timespec time{order.slow_ms / 1000, order.slow_ms % 1000 * 1'000'000};
        ::nanosleep(&time, nullptr);
    }
    if (order.error != 0) errno = order.error;
    return order;
}

std::string path_of(int file) {
    std::array<char, 4096> path{};
    const std::string link = "/proc/self/fd/" + std::to_string(file);
    const ssize_t size = ::readlink(link.c_str(), path.data(), path.size() - 1);
    return size > 0 ? std::string(path.data(), static_cast<std::size_t>(size)) : std::string();
}

/// The pieces up to `most` bytes.
std::vector<iovec> first_bytes(const iovec* pieces, int count, std::size_t most) {
    std::vector<iovec> out;
    for (int i = 0; i < count && most > 0; ++i) {
        out.push_back({pieces[i].iov_base, std::min(pieces[i].iov_len, most)});
        most -= out.back().iov_len;
    }
    return out;
}

std::size_t size_of(const iovec* pieces, int count) {
    std::size_t size = 0;
    for (int i = 0; i < count; ++i)
        size += pieces[i].iov_len;
    return size;
}

template <class Call>
ssize_t write_pieces(int file, const iovec* pieces, int count, Call call) {
    const Order order = order_for("write", path_of(file), size_of(pieces, count));
    if (order.error != 0) return -1;
    const auto some = first_bytes(pieces, count, order.most);
    return call(some.data(), static_cast<int>(some.size()));
}

int sync_file(const char* name, int file) {
    if (order_for("sync", path_of(file)).error != 0) return -1;
    return real<int (*)(int)>(name)(file);
}

template <class... Arguments>
int open_file(const char* name, const char* path, int flags, va_list list, Arguments... first) {
    const bool makes = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
    const mode_t mode = makes ? va_arg(list, mode_t) : 0;
    // Reading is not affected.
    if ((flags & O_ACCMODE) != O_RDONLY && order_for("open", path).error != 0) return -1;
    return real<int (*)(Arguments..., const char*, int, mode_t)>(name)(first..., path, flags, mode);
}

}  // namespace

extern "C" {

ssize_t write(int file, const void* data, size_t size) {
    const Order order = order_for("write", path_of(file), size);
    if (order.error != 0) return -1;
    return real<ssize_t (*)(int, const void*, size_t)>("write")(file, data, std::min(size, order.most));
}
ssize_t pwrite(int file, const void* data, size_t size, off_t at) {
    const Order order = order_for("write", path_of(file), size);
    if (order.error != 0) return -1;
    return real<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite")(file, data,
                                                                        std::min(size, order.most), at);
}
ssize_t pwrite64(int file, const void* data, size_t size, off_t at) {
    return pwrite(file, data, size, at);
}
ssize_t writev(int file, const iovec* pieces, int count) {
    return write_pieces(file, pieces, count, [file](const iovec* some, int n) {
        return real<ssize_t (*)(int, const iovec*, int)>("writev")(file, some, n);
    });
}
ssize_t pwritev(int file, const iovec* pieces, int count, off_t at) {
    return write_pieces(file, pieces, count, [file, at](const iovec* some, int n) {
        return real<ssize_t (*)(int, const iovec*, int, off_t)>("pwritev")(file, some, n, at);
    });
}
ssize_t pwritev64(int file, const iovec* pieces, int count, off_t at) {
    return pwritev(file, pieces, count, at);
}
int fsync(int file) {
    return sync_file("fsync", file);
}
int fdatasync(int file) {
    return sync_file("fdatasync", file);
}
int ftruncate(int file, off_t size) {
    if (order_for("truncate", path_of(file)).error != 0) return -1;
    return real<int (*)(int, off_t)>("ftruncate")(file, size);
}
int ftruncate64(int file, off_t size) {
    return ftruncate(file, size);
}
int rename(const char* from, const char* to) {
    if (order_for("rename", to).error != 0) return -1;
    return real<int (*)(const char*, const char*)>("rename")(from, to);
}
int renameat2(int at, const char* from, int beside, const char* to, unsigned flags) {
    if (order_for("rename", to).error != 0) return -1;
    return real<int (*)(int, const char*, int, const char*, unsigned)>("renameat2")(at, from, beside, to,
                                                                                    flags);
}
int open(const char* path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    const int file = open_file("open", path, flags, list);
    va_end(list);
    return file;
}
int open64(const char* path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    const int file = open_file("open64", path, flags, list);
    va_end(list);
    return file;
}
int openat(int at, const char* path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    const int file = open_file("openat", path, flags, list, at);
    va_end(list);
    return file;
}
int openat64(int at, const char* path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    const int file = open_file("openat64", path, flags, list, at);
    va_end(list);
    return file;
}
}
