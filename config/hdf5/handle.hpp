// The HDF5 C API for C++: handles that close themselves, and errors as text.
#pragma once

#include <hdf5.h>

#include <string>
#include <utility>

namespace petacq::config {

/// Owns an identifier; a negative one is an error of the call that made it.
template <herr_t (*Close)(hid_t)>
class Hdf5Handle {
  public:
    explicit Hdf5Handle(hid_t id = -1) : id_(id) {}
    Hdf5Handle(Hdf5Handle&& o) noexcept : id_(std::exchange(o.id_, -1)) {}
    Hdf5Handle(const Hdf5Handle&) = delete;
    Hdf5Handle& operator=(const Hdf5Handle&) = delete;
    Hdf5Handle& operator=(Hdf5Handle&& o) noexcept {
        std::swap(id_, o.id_);
        return *this;
    }
    ~Hdf5Handle() { close(); }

    explicit operator bool() const { return id_ >= 0; }
    [[nodiscard]] hid_t id() const { return id_; }
    /// False when closing failed: for a file that was written, that is data lost.
    bool close() { return id_ < 0 || Close(std::exchange(id_, -1)) >= 0; }

  private:
    hid_t id_;
};

using Hdf5File = Hdf5Handle<H5Fclose>;
using Hdf5DataSet = Hdf5Handle<H5Dclose>;
using Hdf5Space = Hdf5Handle<H5Sclose>;
using Hdf5Type = Hdf5Handle<H5Tclose>;
using Hdf5List = Hdf5Handle<H5Pclose>;
using Hdf5Attribute = Hdf5Handle<H5Aclose>;

/// Stops HDF5 from printing its errors during its lifetime.
class Hdf5Silence {
  public:
    Hdf5Silence() {
        // A damaged file can leave objects open inside the library, which then complains at exit. Our own
        // objects close themselves.
        H5dont_atexit();
        H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
        H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    }
    ~Hdf5Silence() { H5Eset_auto2(H5E_DEFAULT, print_, data_); }
    Hdf5Silence(const Hdf5Silence&) = delete;
    Hdf5Silence& operator=(const Hdf5Silence&) = delete;

  private:
    H5E_auto2_t print_ = nullptr;
    void* data_ = nullptr;
};

/// The root of the last error: "truncated file: eof = 100, ...".
inline std::string hdf5_error() {
    std::string text;
    const auto keep_first = [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
        auto& s = *static_cast<std::string*>(out);
        if (s.empty() && error->desc != nullptr) s = error->desc;
        return 0;
    };
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &text);
    return text.empty() ? "unknown HDF5 error" : text;
}

}  // namespace petacq::config
