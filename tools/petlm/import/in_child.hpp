// Reading what a library may crash on.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace petacq::petlm {

/// What `read` returns, called in a child process: libhdf5 reads outside its memory where a text of variable
/// length is damaged. Nothing if the child crashed or `read` threw. Throws std::system_error if there can be
/// no child. Only while this process has one thread.
std::optional<std::string> read_in_child(const std::function<std::string()>& read);

}  // namespace petacq::petlm
