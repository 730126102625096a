// Divides one piece of device memory into parts.
#pragma once

#include <cstddef>

namespace petacq::gpu::cuda {

/// Hands out parts, aligned to 256 bytes like the piece. With a null pointer it only adds up sizes.
class Parts {
  public:
    explicit Parts(void* memory) : memory_(static_cast<std::byte*>(memory)) {}
    template <class T>
    T* take(std::size_t count) {
        T* const part = memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + bytes_);
        bytes_ += (count * sizeof(T) + 255) / 256 * 256;
        return part;
    }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

  private:
    std::byte* memory_;
    std::size_t bytes_ = 0;
};

}  // namespace petacq::gpu::cuda
