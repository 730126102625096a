#include <linux/mman.h>
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
        std::string pages;
        std::byte* data = map_pages(bytes, pages);
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

    /// 2 MiB pages where possible: then few page translations are missing while the kernel copies.
    std::byte* map_pages(std::size_t bytes, std::string& pages) {
        const std::size_t whole = (bytes + huge_page - 1) / huge_page * huge_page;
        if (options_.huge_pages) {
            // By name: where ordinary pages are larger than 4 KiB, as some kernels for ARM have them, so are
            // huge ones.
            void* p = map(whole, MAP_HUGETLB | MAP_HUGE_2MB);
            if (p != MAP_FAILED) {
                pages = "huge pages";
                return keep(p, whole);
            }
        }
        // Aligned memory may become transparent huge pages.
        void* p = map(whole + huge_page, 0);
        if (p == MAP_FAILED) {
            throw std::runtime_error("cannot allocate " + std::to_string(bytes) +
                                     " bytes for batches: " + std::generic_category().message(errno));
        }
        std::byte* const begin = keep(p, whole + huge_page);
        const std::size_t past = reinterpret_cast<std::uintptr_t>(begin) % huge_page;
        std::byte* const data = begin + (past == 0 ? 0 : huge_page - past);
        pages = madvise(data, whole, MADV_HUGEPAGE) == 0 ? "transparent huge pages" : "ordinary pages";
        return data;
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
