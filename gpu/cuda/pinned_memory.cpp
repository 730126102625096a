#include "gpu/cuda/pinned_memory.hpp"

#include <cuda_runtime_api.h>

#include <cstring>
#include <string>
#include <vector>

#include "gpu/cuda/check.hpp"

namespace petacq::gpu {

namespace {

class PinnedMemory final : public net::MemorySource {
  public:
    PinnedMemory() = default;
    PinnedMemory(const PinnedMemory&) = delete;
    PinnedMemory& operator=(const PinnedMemory&) = delete;
    ~PinnedMemory() override {
        for (void* p : blocks_)
            cudaFreeHost(p);
    }

    std::byte* allocate(std::size_t bytes) override {
        void* p = nullptr;
        cuda::check(cudaHostAlloc(&p, bytes, cudaHostAllocPortable), "cudaHostAlloc",
                    "allocating " + std::to_string(bytes) + " bytes of pinned memory for batches");
        blocks_.push_back(p);
        std::memset(p, 0, bytes);
        if (!description_.empty()) description_ += "; ";
        description_ += std::to_string((bytes + (1U << 20) - 1) >> 20) + " MiB, pinned by CUDA";
        return static_cast<std::byte*>(p);
    }

    [[nodiscard]] const char* description() const override { return description_.c_str(); }

  private:
    std::vector<void*> blocks_;
    std::string description_;
};

}  // namespace

std::unique_ptr<net::MemorySource> make_pinned_memory() {
    return std::make_unique<PinnedMemory>();
}

}  // namespace petacq::gpu
