#include "tools/petlm/reconstruction/projector/cusparse_cuda.hpp"

#include <dlfcn.h>

namespace petacq::image {
namespace {

CusparseLibrary load() {
    CusparseLibrary library;
    // The version of the header that this was compiled with.
    const std::string name = "libcusparse.so." + std::to_string(CUSPARSE_VER_MAJOR);
    void* handle = nullptr;
    for (const std::string& place : {name, "/usr/local/cuda/lib64/" + name}) {
        handle = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (handle != nullptr) break;
    }
    if (handle == nullptr) {
        library.missing = name + " of the CUDA toolkit cannot be loaded: " + ::dlerror();
        return library;
    }
    const auto find = [&](auto& function, const char* symbol) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(handle, symbol));
        if (function == nullptr) library.missing = name + " has no " + symbol;
    };
    find(library.error_string, "cusparseGetErrorString");
    find(library.create, "cusparseCreate");
    find(library.destroy, "cusparseDestroy");
    find(library.set_stream, "cusparseSetStream");
    find(library.create_csr, "cusparseCreateCsr");
    find(library.destroy_matrix, "cusparseDestroySpMat");
    find(library.create_vector, "cusparseCreateDnVec");
    find(library.destroy_vector, "cusparseDestroyDnVec");
    find(library.product_buffer, "cusparseSpMV_bufferSize");
    find(library.product, "cusparseSpMV");
    find(library.transpose_buffer, "cusparseCsr2cscEx2_bufferSize");
    find(library.transpose, "cusparseCsr2cscEx2");
    return library;
}

}  // namespace

const CusparseLibrary& cusparse() {
    static const CusparseLibrary library = load();
    return library;
}

}  // namespace petacq::image
