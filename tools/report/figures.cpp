#include "tools/report/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "tools/report/page.hpp"

namespace petacq::report {
namespace {

constexpr double curve_width = 255;
constexpr double curve_base = 100;

std::string curve_path(const Curve& curve, double most, const char* name) {
    std::string path = fmt::format("M0 {}", curve_base);
    for (std::size_t bin = 0; bin < curve.size(); ++bin) {
        path +=
            fmt::format("L{:.1f} {:.1f}",
                        curve_width * (static_cast<double>(bin) + 0.5) / static_cast<double>(curve.size()),
                        curve_base - 95 * curve[bin] / most);
    }
    return fmt::format(R"(<path class="{}" d="{}"/>)", name, path);
}

std::string label(double x, const char* anchor, const std::string& text) {
    return text.empty() ? ""
                        : fmt::format(R"(<text x="{:.1f}" y="112" text-anchor="{}">{}</text>)", x, anchor,
                                      escaped(text));
}

std::string data_uri_of(const GreyPicture& picture) {
    return data_uri("image/png", png_of(picture));
}

}  // namespace

std::string curve_figure(const Curve& curve, const Curve* other, const CurveAxis& axis,
                         const std::string& caption) {
    double most = 1;
    for (const Curve* one : {&curve, other})
        if (one != nullptr) most = std::max(most, *std::max_element(one->begin(), one->end()));
    const double mark = curve_width * axis.mark;
    return html_of(Figure{
        fmt::format(
            R"(<svg viewBox="0 0 {0} 115" role="img"><path class="axis" d="M0 {1}H{0}M{2:.1f} 0V{1}"/>)",
            curve_width, curve_base, mark) +
            label(2, "start", axis.left) + label(mark, "middle", axis.at_mark) +
            label(curve_width - 2, "end", axis.right) +
            (other != nullptr ? curve_path(*other, most, "other") : "") + curve_path(curve, most, "curve") +
            "</svg>",
        caption});
}

GreyPicture grey_picture(std::uint32_t width, std::uint32_t height, const std::vector<double>& values,
                         double low, double high) {
    GreyPicture p{width, height, {}};
    for (const double value : values) {
        const double part = std::clamp((value - low) / (high - low), 0.0, 1.0);
        p.pixels.push_back(std::isnan(value) ? 0 : static_cast<std::uint8_t>(30 + 225 * part));
    }
    return p;
}

std::string picture_figure(const GreyPicture& picture, const std::string& caption) {
    return html_of(
        Figure{fmt::format(R"(<svg viewBox="0 0 {0} {1}" preserveAspectRatio="none" style="height:12rem">)"
                           R"(<image width="{0}" height="{1}" preserveAspectRatio="none" href="{2}"/></svg>)",
                           picture.width, picture.height, data_uri_of(picture)),
               caption});
}

std::string square_figure(const GreyPicture& picture, std::uint32_t size, const std::string& title,
                          const std::string& above, const std::string& caption) {
    return html_of(Figure{fmt::format(R"(<svg viewBox="0 0 {0} {0}" role="img"><title>{1}</title>)"
                                      R"(<image width="{0}" height="{0}" href="{2}"/>{3}</svg>)",
                                      size, escaped(title), data_uri_of(picture), above),
                          caption});
}

}  // namespace petacq::report
