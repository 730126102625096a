// HTML pages that look alike and load nothing: their style, tables and figures.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace petacq::report {

/// The text as HTML shows it, whatever it contains.
std::string escaped(std::string_view text);

struct Page {
    std::string title;        ///< text; also the heading
    std::string summary;      ///< HTML, what matters most
    std::string body;         ///< HTML
    std::string footer = {};  ///< text
};
std::string html_of(const Page& page);

struct Cell {
    std::string text;
    bool number = false;  ///< aligned to the right
    bool bad = false;
};
/// A table of texts. The first cell of a row is its name.
struct Table {
    std::string caption = {};
    std::vector<std::string> columns = {};  ///< their names; none are shown if it is empty
    std::vector<std::vector<Cell>> rows;
};
std::string html_of(const Table& table);
/// The same for a table of many columns: it can be moved sideways, also by the keyboard. `name`: for screen
/// readers.
std::string wide_html_of(const Table& table, const std::string& name);

/// Something to look at, with what is said about it.
struct Figure {
    std::string content;       ///< HTML: an svg, img or picture
    std::string caption = {};  ///< HTML
    std::string title = {};    ///< text
    std::string id = {};
};
std::string html_of(const Figure& figure);

/// "data:image/png;base64,...", the contents of a file in the page. `type`: "image/png".
std::string data_uri(std::string_view type, std::string_view contents);

}  // namespace petacq::report
