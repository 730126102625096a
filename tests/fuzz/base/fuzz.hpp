// Shared code of the fuzz targets. A target defines LLVMFuzzerTestOneInput for one entry of the programs:
// bytes from outside go in, and require() holds whatever they are.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

// Of the sanitizers; absent without one.
extern "C" int __sanitizer_install_malloc_and_free_hooks(  // NOLINT(bugprone-reserved-identifier)
    void (*on_malloc)(const volatile void*, std::size_t), void (*on_free)(const volatile void*))
    __attribute__((weak));
extern "C" std::size_t __sanitizer_get_allocated_size(  // NOLINT(bugprone-reserved-identifier)
    const volatile void*) __attribute__((weak));

namespace petacq::fuzz {

/// Aborts if the condition does not hold, so that the fuzzer keeps the input.
inline void require(bool condition, const char* what) {
    if (condition) return;
    std::fprintf(stderr, "violated: %s\n", what);
    std::abort();
}

/// Inputs that were taken as sound. A target that takes none of its seeds would test nothing but refusals:
/// its test fails.
inline std::size_t accepted = 0;
inline void accept() {
    ++accepted;
}

/// Whether the text of an error helps: it says what was expected, that a key is missing, or which one is not
/// known.
inline bool says_what_was_expected(std::string_view text) {
    for (const std::string_view word : {"expected", "missing", "unknown key", "not JSON", "nested deeper"})
        if (text.find(word) != std::string_view::npos) return true;
    return false;
}

/// Aborts if more memory than this was held at once since it was made, so that a small input cannot ask for a
/// large table. Counts under a sanitizer only.
class MemoryBound {
  public:
    explicit MemoryBound(std::size_t bytes) : bytes_(bytes) {
        static const bool counts = __sanitizer_install_malloc_and_free_hooks != nullptr &&
                                   __sanitizer_install_malloc_and_free_hooks(&allocated, &freed) != 0;
        static_cast<void>(counts);
        start_ = held;
        most = start_;
    }
    ~MemoryBound() {
        require(most - start_ <= static_cast<std::ptrdiff_t>(bytes_), "memory in proportion to the input");
    }
    MemoryBound(const MemoryBound&) = delete;
    MemoryBound& operator=(const MemoryBound&) = delete;

  private:
    static void allocated(const volatile void* /*at*/, std::size_t size) {
        held += static_cast<std::ptrdiff_t>(size);
        if (held > most) most = held.load();
    }
    static void freed(const volatile void* at) {
        if (at != nullptr) held -= static_cast<std::ptrdiff_t>(__sanitizer_get_allocated_size(at));
    }
    static inline std::atomic<std::ptrdiff_t> held = 0;
    static inline std::atomic<std::ptrdiff_t> most = 0;

    std::size_t bytes_;
    std::ptrdiff_t start_ = 0;
};

/// Takes the input apart from its start. Behind its end there are zeros.
class Input {
  public:
    Input(const std::uint8_t* data, std::size_t size)
        : left_(reinterpret_cast<const std::byte*>(data), size) {}

    [[nodiscard]] bool empty() const { return left_.empty(); }
    template <class T>
    T take() {
        T value{};
        const auto bytes = take_bytes(sizeof value);
        std::memcpy(&value, bytes.data(), bytes.size());
        return value;
    }
    std::span<const std::byte> take_bytes(std::size_t most) {
        const auto taken = left_.first(std::min(most, left_.size()));
        left_ = left_.subspan(taken.size());
        return taken;
    }

  private:
    std::span<const std::byte> left_;
};

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

/// The input up to its first NUL, and what follows that.
inline std::pair<std::string_view, std::span<const std::uint8_t>> text_and_rest(const std::uint8_t* data,
                                                                                std::size_t size) {
    const std::string_view all = text_of(data, size);
    const std::size_t end = all.find('\0');
    if (end == std::string_view::npos) return {all, {}};
    return {all.substr(0, end), {data + end + 1, size - end - 1}};
}

/// An empty directory in memory, removed at the end of the program: writing does not wait for a disk.
class ScratchDirectory {
  public:
    ScratchDirectory() : path_("/dev/shm/petacq-fuzz-" + std::to_string(::getpid())) {
        std::filesystem::remove_all(path_);
        std::filesystem::create_directory(path_);
    }
    ~ScratchDirectory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    ScratchDirectory(const ScratchDirectory&) = delete;
    ScratchDirectory& operator=(const ScratchDirectory&) = delete;
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    /// Replaces a file in it.
    [[nodiscard]] std::filesystem::path write(const char* name, std::span<const std::uint8_t> bytes) const {
        const std::filesystem::path file = path_ / name;
        std::FILE* const out = std::fopen(file.c_str(), "wb");
        require(out != nullptr, "memory for a file");
        require(std::fwrite(bytes.data(), 1, bytes.size(), out) == bytes.size(), "memory for a file");
        require(std::fclose(out) == 0, "memory for a file");
        return file;
    }

  private:
    std::filesystem::path path_;
};

/// A file in memory with these bytes. It has no name in a directory, which libhdf5 asks for.
class MemoryFile {
  public:
    MemoryFile(const std::uint8_t* data, std::size_t size) : file_(::memfd_create("input", MFD_CLOEXEC)) {
        require(file_ >= 0 && ::write(file_, data, size) == static_cast<ssize_t>(size), "memory for a file");
    }
    ~MemoryFile() { ::close(file_); }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;
    [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

  private:
    int file_;
};

}  // namespace petacq::fuzz
