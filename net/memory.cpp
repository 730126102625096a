#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <system_error>

#include "net/batch.hpp"

namespace petacq::net {

namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

struct Mapping {
    void* begin;
    std::size_t bytes;
};

void* map(std::size_t bytes, int extra_flags) {
    return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | extra_flags, -1, 0);
}

class HostMemory final : public MemorySource {
  public:
    explicit HostMemory(const HostMemoryOptions& options) : options_(options) {}
    HostMemory(const HostMemory&) = delete;
    HostMemory& operator=(const HostMemory&) = delete;
    ~HostMemory() override {
        for (const Mapping& m : mappings_)
            munmap(m.begin, m.bytes);
    }

    std::byte* allocate(std::size_t bytes) override {
        std::string pages = "ordinary pages";
        std::byte* data = options_.huge_pages ? map_huge(bytes, pages) : map_ordinary(bytes);
        const bool locked = options_.lock && mlock(data, bytes) == 0;
        const int why_not = errno;
        std::memset(data, 0, bytes);  // so that no page fault occurs while receiving

        if (!description_.empty()) description_ += "; ";
        description_ += std::to_string((bytes + (1U << 20) - 1) >> 20) + " MiB, " + pages;
        if (locked) description_ += ", locked";
        if (options_.lock && !locked) {
            description_ += ", not locked (" + std::generic_category().message(why_not) + ": see ulimit -l)";
        }
        return data;
    }

    [[nodiscard]] const char* description() const override { return description_.c_str(); }

  private:
    std::byte* keep(void* begin, std::size_t bytes) {
        mappings_.push_back({begin, bytes});
        return static_cast<std::byte*>(begin);
    }

    std::byte* map_ordinary(std::size_t bytes) {
        void* p = map(bytes, 0);
        if (p == MAP_FAILED) {
            throw std::runtime_error("cannot allocate " + std::to_string(bytes) +
                                     " bytes for batches: " + std::generic_category().message(errno));
        }
        return keep(p, bytes);
    }

    std::byte* map_huge(std::size_t bytes, std::string& pages) {
        const std::size_t whole = (bytes + huge_page - 1) / huge_page * huge_page;
        void* p = map(whole, MAP_HUGETLB);
        if (p != MAP_FAILED) {
            pages = "huge pages";
            return keep(p, whole);
        }
        // No huge pages are reserved. Aligned ordinary memory may become transparent huge pages.
        std::byte* begin = map_ordinary(whole + huge_page);
        const std::size_t past = reinterpret_cast<std::uintptr_t>(begin) % huge_page;
        begin += past == 0 ? 0 : huge_page - past;
        pages = madvise(begin, whole, MADV_HUGEPAGE) == 0 ? "transparent huge pages" : "ordinary pages";
        return begin;
    }

    HostMemoryOptions options_;
    std::vector<Mapping> mappings_;
    std::string description_;
};

}  // namespace

std::unique_ptr<MemorySource> make_host_memory(const HostMemoryOptions& options) {
    return std::make_unique<HostMemory>(options);
}

}  // namespace petacq::net
