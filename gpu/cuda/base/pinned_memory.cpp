#include "gpu/cuda/base/pinned_memory.hpp"

#include <cuda_runtime_api.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu/cuda/base/check.hpp"

namespace petacq::gpu {

namespace {

/// Why kernels cannot use the address that the host uses for memory which is registered; empty if they can.
std::string why_no_registration() {
    int device = 0;
    int usable = 0;
    cudaError_t status = cudaGetDevice(&device);
    if (status == cudaSuccess)
        status = cudaDeviceGetAttribute(&usable, cudaDevAttrCanUseHostPointerForRegisteredMem, device);
    if (status != cudaSuccess) return cudaGetErrorString(status);
    return usable != 0 ? "" : "this GPU has other addresses for it";
}

class PinnedMemory final : public net::MemorySource {
  public:
    explicit PinnedMemory(bool huge_pages) : huge_pages_(huge_pages) {}
    PinnedMemory(const PinnedMemory&) = delete;
    PinnedMemory& operator=(const PinnedMemory&) = delete;
    ~PinnedMemory() override {
        for (const Allocation& allocation : allocations_)
            allocation.host ? cudaHostUnregister(allocation.data) : cudaFreeHost(allocation.data);
    }

    std::byte* allocate(std::size_t bytes) override {
        std::string pages;
        Allocation allocation = register_host_memory(bytes, pages);
        if (allocation.data == nullptr) allocation = allocate_by_driver(bytes, pages);
        allocations_.push_back(std::move(allocation));
        if (!description_.empty()) description_ += "; ";
        description_ += pages;
        return static_cast<std::byte*>(allocations_.back().data);
    }

    [[nodiscard]] const char* description() const override { return description_.c_str(); }

  private:
    struct Allocation {
        std::unique_ptr<net::MemorySource> host;  ///< nullptr: the driver has allocated it
        void* data = nullptr;
    };

    /// Without data if the driver refuses; `pages` is then the reason.
    Allocation register_host_memory(std::size_t bytes, std::string& pages) const {
        pages = why_no_registration();
        if (!pages.empty()) return {};
        // Registering locks the pages, too.
        Allocation allocation{net::make_host_memory({huge_pages_, false}), nullptr};
        std::byte* const data = allocation.host->allocate(bytes);
        const cudaError_t status =
            cudaHostRegister(data, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped);
        if (status != cudaSuccess) {
            cudaGetLastError();  // clears the error, so that no later call reports it
            pages = cudaGetErrorString(status);
            return {};
        }
        allocation.data = data;
        pages = std::string(allocation.host->description()) + ", pinned by CUDA";
        return allocation;
    }

    static Allocation allocate_by_driver(std::size_t bytes, std::string& pages) {
        Allocation allocation;
        cuda::check(cudaHostAlloc(&allocation.data, bytes, cudaHostAllocPortable), "cudaHostAlloc",
                    "allocating " + std::to_string(bytes) + " bytes of pinned memory for batches");
        std::memset(allocation.data, 0, bytes);
        pages = std::to_string((bytes + (1U << 20) - 1) >> 20) +
                " MiB, pages of the driver, pinned by CUDA (it cannot pin others: " + pages + ")";
        return allocation;
    }

    const bool huge_pages_;
    std::vector<Allocation> allocations_;
    std::string description_;
};

}  // namespace

std::unique_ptr<net::MemorySource> make_pinned_memory(bool huge_pages) {
    return std::make_unique<PinnedMemory>(huge_pages);
}

}  // namespace petacq::gpu
