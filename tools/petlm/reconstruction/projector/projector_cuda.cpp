#include "tools/petlm/reconstruction/projector/projector_cuda.hpp"

#include <algorithm>
#include <stdexcept>

#include "gpu/cuda/base/memory.hpp"
#include "gpu/cuda/cuda_pipeline.hpp"
#include "gpu/device_memory_error.hpp"
#include "tools/petlm/reconstruction/projector/cusparse_cuda.hpp"
#include "tools/petlm/reconstruction/projector/ray_rows.hpp"

namespace petacq::image {
namespace {

using gpu::cuda::check;
using gpu::cuda::Memory;

void check_sparse(cusparseStatus_t status, const char* call) {
    if (status == CUSPARSE_STATUS_SUCCESS) return;
    const std::string what = std::string("cuSPARSE: ") + call +
                             " failed while making an image: " + cusparse().error_string(status);
    if (status == CUSPARSE_STATUS_ALLOC_FAILED || status == CUSPARSE_STATUS_INSUFFICIENT_RESOURCES)
        throw gpu::DeviceMemoryError("memory of the GPU: " + what);
    throw std::runtime_error(what);
}

/// Returns what `make` returns; reports every lack of device memory as gpu::DeviceMemoryError.
template <class Make>
auto with_device_memory(const Make& make) {
    cudaGetLastError();  // clears errors of earlier calls
    try {
        return make();
    } catch (const gpu::DeviceMemoryError&) {
        throw;
    } catch (const std::runtime_error& error) {
        if (cudaGetLastError() != cudaErrorMemoryAllocation) throw;
        throw gpu::DeviceMemoryError(std::string("memory of the GPU: ") + error.what());
    }
}

/// A cuSPARSE handle.
class Handle {
  public:
    explicit Handle(cudaStream_t stream) {
        check_sparse(cusparse().create(&handle_), "cusparseCreate");
        check_sparse(cusparse().set_stream(handle_, stream), "cusparseSetStream");
    }
    ~Handle() { cusparse().destroy(handle_); }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    [[nodiscard]] cusparseHandle_t get() const { return handle_; }

  private:
    cusparseHandle_t handle_ = nullptr;
};

class Vector {
  public:
    Vector(float* values, std::size_t size) {
        check_sparse(cusparse().create_vector(&vector_, static_cast<std::int64_t>(size), values, CUDA_R_32F),
                     "cusparseCreateDnVec");
    }
    ~Vector() { cusparse().destroy_vector(vector_); }
    Vector(const Vector&) = delete;
    Vector& operator=(const Vector&) = delete;
    [[nodiscard]] cusparseDnVecDescr_t get() const { return vector_; }

  private:
    cusparseDnVecDescr_t vector_ = nullptr;
};

/// A CSR matrix in device memory that the caller owns, for products with it.
class Csr {
  public:
    Csr(std::size_t rows, std::size_t columns, std::size_t nonzeros, std::int32_t* row_start,
        std::int32_t* column, float* value) {
        check_sparse(cusparse().create_csr(
                         &matrix_, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns),
                         static_cast<std::int64_t>(nonzeros), row_start, column, value, CUSPARSE_INDEX_32I,
                         CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F),
                     "cusparseCreateCsr");
    }
    ~Csr() { cusparse().destroy_matrix(matrix_); }
    Csr(const Csr&) = delete;
    Csr& operator=(const Csr&) = delete;

    /// Bytes of the buffer for product().
    [[nodiscard]] std::size_t buffer_bytes(const Handle& handle, const Vector& x, const Vector& y) const {
        std::size_t bytes = 0;
        check_sparse(
            cusparse().product_buffer(handle.get(), CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix_, x.get(),
                                      &one, y.get(), CUDA_R_32F, CUSPARSE_SPMV_CSR_ALG2, &bytes),
            "cusparseSpMV_bufferSize");
        return bytes;
    }
    /// y = A x + beta y.
    void product(const Handle& handle, const Vector& x, float beta, const Vector& y, void* buffer) const {
        // Algorithm 2 gives the same sums every time.
        check_sparse(cusparse().product(handle.get(), CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix_,
                                        x.get(), &beta, y.get(), CUDA_R_32F, CUSPARSE_SPMV_CSR_ALG2, buffer),
                     "cusparseSpMV");
    }

  private:
    static constexpr float one = 1;
    cusparseSpMatDescr_t matrix_ = nullptr;
};

class CudaProjector final : public Projector {
  public:
    CudaProjector(const Grid& grid, const config::LineGeometry& geometry, std::uint64_t max_budget)
        : box_(Box::of(grid)),
          voxels_(grid.voxels()),
          memory_(Memory::Purpose::use),
          handle_(stream_),
          places_(memory_.device<config::CrystalPlace>(geometry.places.size())),
          depth_(geometry.depth),
          image_(memory_.device<float>(voxels_)),
          sums_(memory_.device<float>(voxels_)),
          image_vector_(image_, voxels_),
          sums_vector_(sums_, voxels_) {
        copy(places_, geometry.places.data(), geometry.places.size() * sizeof(config::CrystalPlace),
             cudaMemcpyHostToDevice);
        std::size_t free = 0;
        std::size_t total = 0;
        check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo", "making an image");
        budget_ = std::min<std::uint64_t>(max_budget, free / 100 * 85);
    }

    void set_image(std::span<const float> image) override {
        copy(image_, image.data(), image.size_bytes(), cudaMemcpyHostToDevice);
    }
    void clear_sums() override {
        check(cudaMemsetAsync(sums_, 0, voxels_ * sizeof(float), stream_), "cudaMemsetAsync",
              "making an image");
    }
    void read_sums(std::span<float> sums) override {
        copy(sums.data(), sums_, sums.size_bytes(), cudaMemcpyDeviceToHost);
    }
    std::unique_ptr<SystemMatrix> build(std::span<const Pair> pairs,
                                        std::span<const std::uint32_t> row_start) override;

    [[nodiscard]] std::uint64_t matrix_budget() const override { return budget_; }
    [[nodiscard]] bool on_device() const override { return true; }
    [[nodiscard]] std::uint64_t matrix_bytes(std::uint64_t lines, std::uint64_t nonzeros) const override {
        // The matrix, its transpose, as much again during the transposition, and the buffers of the products.
        return 32 * nonzeros + 32 * lines + 8 * voxels_;
    }

  private:
    friend class CudaMatrix;
    void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) const {
        check(cudaMemcpyAsync(to, from, bytes, kind, stream_), "cudaMemcpyAsync", "making an image");
        check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize", "making an image");
    }

    Box box_;
    std::size_t voxels_;
    Memory memory_;
    gpu::cuda::Stream stream_;
    Handle handle_;
    config::CrystalPlace* places_;
    config::DepthOfInteraction depth_;
    float* image_;
    float* sums_;
    Vector image_vector_;
    Vector sums_vector_;
    std::uint64_t budget_ = 0;
};

class CudaMatrix final : public SystemMatrix {
  public:
    CudaMatrix(CudaProjector& of, std::span<const Pair> pairs, std::span<const std::uint32_t> row_start)
        : of_(of),
          lines_(pairs.size()),
          nonzeros_(row_start.back()),
          memory_(Memory::Purpose::use),
          row_start_(memory_.device<std::int32_t>(lines_ + 1)),
          voxel_(memory_.device<std::int32_t>(nonzeros_)),
          length_(memory_.device<float>(nonzeros_)),
          column_start_(memory_.device<std::int32_t>(of.voxels_ + 1)),
          line_(memory_.device<std::int32_t>(nonzeros_)),
          line_length_(memory_.device<float>(nonzeros_)),
          values_(memory_.device<float>(lines_)),
          values_vector_(values_, lines_),
          rows_(lines_, of.voxels_, nonzeros_, row_start_, voxel_, length_),
          columns_(of.voxels_, lines_, nonzeros_, column_start_, line_, line_length_) {
        if (nonzeros_ == 0) return;
        fill(pairs, row_start);
        forward_buffer_ =
            memory_.device<std::byte>(rows_.buffer_bytes(of.handle_, of.image_vector_, values_vector_));
        back_buffer_ =
            memory_.device<std::byte>(columns_.buffer_bytes(of.handle_, values_vector_, of.sums_vector_));
    }

    void forward(std::span<float> lines) override {
        if (nonzeros_ == 0) {
            std::fill(lines.begin(), lines.end(), 0.0F);
            return;
        }
        rows_.product(of_.handle_, of_.image_vector_, 0, values_vector_, forward_buffer_);
        of_.copy(lines.data(), values_, lines.size_bytes(), cudaMemcpyDeviceToHost);
    }
    void back(std::span<const float> lines) override {
        if (nonzeros_ == 0) return;
        of_.copy(values_, lines.data(), lines.size_bytes(), cudaMemcpyHostToDevice);
        columns_.product(of_.handle_, values_vector_, 1, of_.sums_vector_, back_buffer_);
    }

  private:
    void fill(std::span<const Pair> pairs, std::span<const std::uint32_t> row_start) {
        Memory scratch(Memory::Purpose::use);
        auto* const crystals = scratch.device<Pair>(lines_);
        of_.copy(crystals, pairs.data(), pairs.size_bytes(), cudaMemcpyHostToDevice);
        of_.copy(row_start_, row_start.data(), row_start.size_bytes(), cudaMemcpyHostToDevice);
        trace_rows(of_.box_, of_.places_, of_.depth_, crystals, row_start_,
                   static_cast<std::uint32_t>(lines_), voxel_, length_, of_.stream_);
        const auto rows = static_cast<int>(lines_);
        const auto columns = static_cast<int>(of_.voxels_);
        const auto nonzeros = static_cast<int>(nonzeros_);
        std::size_t bytes = 0;
        check_sparse(cusparse().transpose_buffer(of_.handle_.get(), rows, columns, nonzeros, length_,
                                                 row_start_, voxel_, line_length_, column_start_, line_,
                                                 CUDA_R_32F, CUSPARSE_ACTION_NUMERIC,
                                                 CUSPARSE_INDEX_BASE_ZERO, CUSPARSE_CSR2CSC_ALG1, &bytes),
                     "cusparseCsr2cscEx2_bufferSize");
        auto* const buffer = scratch.device<std::byte>(bytes);
        check_sparse(
            cusparse().transpose(of_.handle_.get(), rows, columns, nonzeros, length_, row_start_, voxel_,
                                 line_length_, column_start_, line_, CUDA_R_32F, CUSPARSE_ACTION_NUMERIC,
                                 CUSPARSE_INDEX_BASE_ZERO, CUSPARSE_CSR2CSC_ALG1, buffer),
            "cusparseCsr2cscEx2");
        // The scratch memory must outlive the work.
        check(cudaStreamSynchronize(of_.stream_), "cudaStreamSynchronize", "making an image");
    }

    CudaProjector& of_;
    std::size_t lines_;
    std::size_t nonzeros_;
    Memory memory_;
    std::int32_t* row_start_;
    std::int32_t* voxel_;
    float* length_;
    std::int32_t* column_start_;
    std::int32_t* line_;
    float* line_length_;
    float* values_;
    Vector values_vector_;
    Csr rows_;
    Csr columns_;
    void* forward_buffer_ = nullptr;
    void* back_buffer_ = nullptr;
};

std::unique_ptr<SystemMatrix> CudaProjector::build(std::span<const Pair> pairs,
                                                   std::span<const std::uint32_t> row_start) {
    return with_device_memory([&] { return std::make_unique<CudaMatrix>(*this, pairs, row_start); });
}

}  // namespace

std::optional<std::string> cuda_projector_unusable_reason() {
    if (auto reason = gpu::cuda_unusable_reason()) return reason;
    if (!cusparse().missing.empty()) return cusparse().missing;
    return std::nullopt;
}

std::unique_ptr<Projector> make_cuda_projector(const Grid& grid, const config::LineGeometry& geometry,
                                               std::uint64_t max_budget) {
    return with_device_memory([&] { return std::make_unique<CudaProjector>(grid, geometry, max_budget); });
}

}  // namespace petacq::image
