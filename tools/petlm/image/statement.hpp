// What stands beside an image: README.txt for people, image.json for programs, the captions of pictures.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/petlm/image/corrections.hpp"
#include "tools/petlm/image/pictures.hpp"

namespace petacq::image {

struct Statement {
    const std::filesystem::path& target;
    const Grid& grid;
    const Corrections& corrections;
    const std::vector<std::string>& lines;  ///< sentences about input, settings and corrections
    bool pictures;
};

PictureTexts picture_texts(const Corrections& corrections);
std::string readme(const Statement& statement);
/// docs/how-to/image.md describes its members.
std::string json_text(const Statement& statement);

}  // namespace petacq::image
