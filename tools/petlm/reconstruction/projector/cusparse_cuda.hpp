// cuSPARSE, loaded on first use, so that programs also start without it.
#pragma once

#include <cusparse.h>

#include <string>

namespace petacq::image {

/// The functions used, as cusparse.h declares them.
struct CusparseLibrary {
    decltype(&cusparseGetErrorString) error_string = nullptr;
    decltype(&cusparseCreate) create = nullptr;
    decltype(&cusparseDestroy) destroy = nullptr;
    decltype(&cusparseSetStream) set_stream = nullptr;
    decltype(&cusparseCreateCsr) create_csr = nullptr;
    decltype(&cusparseDestroySpMat) destroy_matrix = nullptr;
    decltype(&cusparseCreateDnVec) create_vector = nullptr;
    decltype(&cusparseDestroyDnVec) destroy_vector = nullptr;
    decltype(&cusparseSpMV_bufferSize) product_buffer = nullptr;
    decltype(&cusparseSpMV) product = nullptr;
    decltype(&cusparseCsr2cscEx2_bufferSize) transpose_buffer = nullptr;
    decltype(&cusparseCsr2cscEx2) transpose = nullptr;

    std::string missing;  ///< why it cannot be used; empty if it can
};

/// The first call loads it for the rest of the program. Thread-safe.
const CusparseLibrary& cusparse();

}  // namespace petacq::image
