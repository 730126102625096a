// cuSPARSE, loaded when it is needed: programs start where there is none.
#pragma once

#include <cusparse.h>

#include <string>

namespace petacq::image {

/// The functions that are used, each as cusparse.h declares it.
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

    std::string missing;  ///< why it cannot be used; empty when it can
};

/// Loaded by the first call, for as long as the program runs. Thread-safe.
const CusparseLibrary& cusparse();

}  // namespace petacq::image
