#include "tests/tools/petctl/pseudo_terminal.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>

#include "tests/support/eventually.hpp"

namespace petacq::test {

void Screen::resize(std::size_t columns, std::size_t rows) {
    rows_.resize(rows);
    for (auto& row : rows_)
        row.resize(columns, " ");
    x_ = std::min(x_, columns - 1);
    y_ = std::min(y_, rows - 1);
}

std::string Screen::text() const {
    std::string text;
    for (const auto& row : rows_) {
        std::string line;
        for (const Cell& cell : row)
            line += cell;
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    }
    return text;
}

void Screen::blank(std::size_t row, std::size_t from, std::size_t to) {
    for (std::size_t x = from; x < std::min(to, rows_[row].size()); ++x)
        rows_[row][x] = " ";
}

void Screen::character(std::string_view bytes) {
    const char c = bytes.front();
    if (c == '\r') {
        x_ = 0;
    } else if (c == '\n') {
        y_ = std::min(y_ + 1, rows_.size() - 1);
    } else if (c == '\b') {
        x_ -= std::min<std::size_t>(x_, 1);
    } else if (static_cast<unsigned char>(c) >= ' ') {
        last_ = bytes;
        if (x_ < rows_[y_].size()) rows_[y_][x_] = last_;
        ++x_;
    }
}

void Screen::sequence(const std::string& parameters, char final) {
    if (parameters.starts_with('?') || parameters.starts_with('>')) return;  // modes
    const auto parameter = [&](std::size_t index) {
        std::size_t begin = 0;
        while (index-- > 0)
            begin = std::min(parameters.find(';', begin), parameters.size() - 1) + 1;
        const int value = std::atoi(parameters.c_str() + begin);
        return static_cast<std::size_t>(std::max(value, 1));
    };
    const bool zero = parameters.empty() || parameters == "0";
    auto& row = rows_[y_];
    const auto column = static_cast<std::ptrdiff_t>(std::min(x_, row.size()));
    switch (final) {
        case 'H':
            y_ = std::min(parameter(0), rows_.size()) - 1;
            x_ = parameters.find(';') == std::string::npos ? 0 : parameter(1) - 1;
            break;
        case 'd':
            y_ = std::min(parameter(0), rows_.size()) - 1;
            break;
        case 'G':
            x_ = parameter(0) - 1;
            break;
        case 'A':
            y_ -= std::min(y_, parameter(0));
            break;
        case 'B':
            y_ = std::min(y_ + parameter(0), rows_.size() - 1);
            break;
        case 'C':
            x_ += parameter(0);
            break;
        case 'D':
            x_ -= std::min(x_, parameter(0));
            break;
        case 'X':
            blank(y_, x_, x_ + parameter(0));
            break;
        case 'K':
            zero ? blank(y_, x_, row.size()) : blank(y_, 0, x_ + 1);
            break;
        case 'J':
            if (zero) blank(y_, x_, row.size());
            for (std::size_t y = zero ? y_ + 1 : 0; y < rows_.size(); ++y)
                blank(y, 0, rows_[y].size());
            break;
        case 'b':
            for (std::size_t n = parameter(0); n > 0; --n)
                character(last_);
            break;
        case 'P':
            for (std::size_t n = parameter(0); n > 0; --n) {
                row.erase(row.begin() + column);
                row.emplace_back(" ");
            }
            break;
        case '@':
            for (std::size_t n = parameter(0); n > 0; --n) {
                row.insert(row.begin() + column, " ");
                row.pop_back();
            }
            break;
        case 'L':  // a line more, and the last one less
            for (std::size_t n = parameter(0); n > 0; --n)
                std::rotate(rows_.begin() + static_cast<std::ptrdiff_t>(y_), rows_.end() - 1, rows_.end());
            for (std::size_t y = y_; y < std::min(y_ + parameter(0), rows_.size()); ++y)
                blank(y, 0, rows_[y].size());
            break;
        case 'M':
            for (std::size_t n = parameter(0); n > 0; --n) {
                std::rotate(rows_.begin() + static_cast<std::ptrdiff_t>(y_),
                            rows_.begin() + static_cast<std::ptrdiff_t>(y_) + 1, rows_.end());
                blank(rows_.size() - 1, 0, rows_.back().size());
            }
            break;
        case 'm':  // colours
        case 'r':  // a scroll region: nothing is scrolled
        case 'l':
        case 'h':
        case 't':
            break;
        default:
            unknown_ += "[" + parameters + final;
    }
}

void Screen::take(std::string_view bytes) {
    for (const char c : bytes) {
        waiting_ += c;
        const auto first = static_cast<unsigned char>(waiting_.front());
        if (first == 0x1B) {
            if (waiting_.size() < 2) continue;
            if (waiting_[1] == '[') {
                if (waiting_.size() < 3 || c < '@' || c > '~') continue;
                sequence(waiting_.substr(2, waiting_.size() - 3), c);
            } else if (waiting_[1] == ']') {  // a title
                if (c != '\a') continue;
            } else if (waiting_[1] == '(') {
                if (waiting_.size() < 3) continue;
            } else if (waiting_[1] == 'M' && y_ > 0) {
                --y_;
            } else if (waiting_[1] != '=' && waiting_[1] != '>') {
                unknown_ += waiting_.substr(1);
            }
        } else {
            const std::size_t length = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
            if (waiting_.size() < length) continue;
            character(waiting_);
        }
        waiting_.clear();
    }
}

PseudoTerminal::PseudoTerminal() {
    main_ = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (main_ < 0) return;
    std::array<char, 64> name{};
    if (::grantpt(main_) != 0 || ::unlockpt(main_) != 0 || ::ptsname_r(main_, name.data(), name.size()) != 0)
        throw std::runtime_error("cannot make a pseudo-terminal");
    name_ = name.data();
    other_ = ::open(name_.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (other_ < 0 || ::tcgetattr(other_, &modes_) != 0)
        throw std::runtime_error("cannot open the pseudo-terminal");
    resize(80, 24);
}

PseudoTerminal::~PseudoTerminal() {
    if (other_ >= 0) ::close(other_);
    if (main_ >= 0) ::close(main_);
}

void PseudoTerminal::resize(unsigned short columns, unsigned short rows) {
    const winsize size{rows, columns, 0, 0};
    screen_.resize(columns, rows);
    ::ioctl(main_, TIOCSWINSZ, &size);
}

void PseudoTerminal::type(const std::string& keys) const {
    if (::write(main_, keys.data(), keys.size()) != static_cast<ssize_t>(keys.size()))
        throw std::runtime_error("cannot type");
}

void PseudoTerminal::read() {
    pollfd readable{main_, POLLIN, 0};
    std::array<char, 4096> chunk{};
    if (::poll(&readable, 1, 10) <= 0) return;
    const ssize_t got = ::read(main_, chunk.data(), chunk.size());
    if (got <= 0) return;
    const std::string_view text(chunk.data(), static_cast<std::size_t>(got));
    bytes_ += text;
    screen_.take(text);
}

bool PseudoTerminal::comes(const std::string& part) {
    return eventually([&] {
        read();
        return bytes_.find(part) != std::string::npos;
    });
}

bool PseudoTerminal::shows(const std::string& text) {
    return eventually([&] {
        read();
        return screen_.text().find(text) != std::string::npos;
    });
}

bool PseudoTerminal::as_it_was() const {
    termios now{};
    return ::tcgetattr(other_, &now) == 0 && now.c_lflag == modes_.c_lflag && now.c_iflag == modes_.c_iflag &&
           now.c_oflag == modes_.c_oflag && now.c_cflag == modes_.c_cflag;
}

}  // namespace petacq::test
