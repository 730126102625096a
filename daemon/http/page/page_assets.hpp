// The files of the live page, compiled in: nothing is looked up on disk at run time.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace petacq::daemon {

struct PageAsset {
    const char* path;  ///< in the URL
    const char* type;
    std::shared_ptr<const std::string> text;
};

const std::vector<PageAsset>& page_assets();

}  // namespace petacq::daemon
