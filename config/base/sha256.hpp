// SHA-256 by OpenSSL.
#pragma once

#include <openssl/evp.h>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace petacq::config {

class Sha256 {
  public:
    /// Throws std::runtime_error.
    Sha256() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
        if (!context_ || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1)
            throw std::runtime_error("OpenSSL does not provide SHA-256");
    }
    void add(std::span<const std::byte> data) { EVP_DigestUpdate(context_.get(), data.data(), data.size()); }
    /// The bytes of a value, or of the values of an array, which must have no padding.
    template <class T>
    void add_value(const T& value) {
        static_assert(std::is_trivially_copyable_v<T>);
        add(std::as_bytes(std::span(&value, 1)));
    }
    template <class T>
    void add_values(const std::vector<T>& values) {
        static_assert(std::is_trivially_copyable_v<T>);
        add_value(values.size());
        add(std::as_bytes(std::span(values)));
    }
    /// Lower-case hex of all that was added; call it once.
    std::string text() {
        std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
        unsigned length = 0;
        EVP_DigestFinal_ex(context_.get(), digest.data(), &length);
        std::string hex;
        for (const unsigned char byte : std::span(digest).first(length))
            (hex += "0123456789abcdef"[byte >> 4]) += "0123456789abcdef"[byte & 0xF];
        return hex;
    }

  private:
    std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace petacq::config
