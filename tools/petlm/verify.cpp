#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <iostream>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <system_error>

#include "daemon/listmode_reader.hpp"
#include "tools/petlm/commands.hpp"
#include "tools/petlm/in_order.hpp"
#include "tools/petlm/progress.hpp"
#include "tools/petlm/run.hpp"

namespace petacq::petlm {
namespace {

using namespace nlohmann::literals;

constexpr std::uint64_t most_told = 20;  // of one kind of problem

class Sha256 {
  public:
    Sha256() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
        if (!context_ || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1) {
            throw std::runtime_error("SHA-256 is not to be had from the library");
        }
    }
    void add(std::span<const std::byte> data) { EVP_DigestUpdate(context_.get(), data.data(), data.size()); }
    std::string text() {
        std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
        unsigned length = 0;
        EVP_DigestFinal_ex(context_.get(), digest.data(), &length);
        std::string out;
        for (unsigned i = 0; i < length; ++i)
            out += fmt::format("{:02x}", digest[i]);
        return out;
    }

  private:
    std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

/// Goes over the records of one file.
class RecordCheck {
  public:
    RecordCheck(const daemon::ListModeReader& reader, std::string& text) : reader_(reader), text_(text) {
        const auto crystals = reader.description().find("crystals");
        if (crystals != reader.description().end() && crystals->is_number_unsigned()) {
            crystal_count_ = crystals->get<std::uint64_t>();
        }
    }
    void block() {
        if (reader_.kind() == daemon::RecordKind::coincidences) {
            records(reader_.coincidences(), last_pair_);
        } else {
            records(reader_.singles(), last_single_);
        }
    }
    std::uint64_t prompts = 0;
    std::uint64_t problems = 0;

  private:
    template <class Record>
    void records(std::span<const Record> all, std::optional<Record>& last) {
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (last && !daemon::in_order(*last, all[i])) tell(i, "is not in order");
            last = all[i];
            fields(i, all[i]);
        }
    }
    void fields(std::size_t i, const gpu::Coincidence& pair) {
        if (pair.kind == gpu::Kind::prompt) {
            ++prompts;
        } else if (pair.kind != gpu::Kind::delayed) {
            tell(i, "is neither prompt nor delayed");
        }
        if (pair.crystal_a >= crystal_count_ || pair.crystal_b >= crystal_count_) tell_crystal(i);
    }
    void fields(std::size_t i, const gpu::Single& single) {
        if (single.crystal >= crystal_count_) tell_crystal(i);
    }
    void tell_crystal(std::size_t i) {
        tell(i, "has a crystal beyond the scanner's " + std::to_string(crystal_count_));
    }
    void tell(std::size_t i, const std::string& what) {
        if (++problems <= most_told) {
            text_ += fmt::format("{}: record {} (block {}) {}\n", reader_.path().string(),
                                 reader_.block().first_record + i, reader_.block().number, what);
        }
    }

    const daemon::ListModeReader& reader_;
    std::string& text_;
    std::uint64_t crystal_count_ = UINT64_MAX;
    std::optional<gpu::Coincidence> last_pair_;
    std::optional<gpu::Single> last_single_;
};

/// What the files of a run hold together.
struct Totals {
    std::uint64_t pairs = 0;
    std::uint64_t prompts = 0;
    std::optional<std::uint64_t> singles;

    void add(daemon::RecordKind kind, std::uint64_t records, std::uint64_t prompts_of_them) {
        if (kind == daemon::RecordKind::coincidences) {
            pairs += records;
            prompts += prompts_of_them;
        } else {
            singles = singles.value_or(0) + records;
        }
    }
};

/// What became of one file.
struct Verdict {
    int status = ok;
    std::string text;  ///< for a person, lines
    daemon::RecordKind kind = daemon::RecordKind::coincidences;
    std::uint64_t records = 0;
    std::uint64_t prompts = 0;
};

/// How far all files together are. Any thread.
class SharedProgress {
  public:
    SharedProgress(const std::string& what, std::uint64_t total_bytes) : progress_(what, total_bytes) {}
    void add(std::uint64_t bytes) {
        const std::lock_guard lock(mutex_);
        progress_.show(done_ += bytes);
    }

  private:
    std::mutex mutex_;
    std::uint64_t done_ = 0;
    Progress progress_;
};

Verdict verify_file(const std::filesystem::path& file, SharedProgress& progress) {
    daemon::ListModeReader reader(file);
    Verdict verdict;
    RecordCheck check(reader, verdict.text);
    Sha256 digest;
    while (reader.next()) {
        digest.add(reader.payload());
        check.block();
        progress.add(sizeof(daemon::BlockHeader) + reader.payload().size());
    }
    const auto& condition = reader.condition();
    const std::string name = file.string();
    std::string& text = verdict.text;
    for (const auto& damage : condition.damage) {
        text += fmt::format("{}: offset {}: {}", name, damage.offset, damage.what);
        if (damage.bytes != 0) text += fmt::format(", {} bytes not readable", damage.bytes);
        text += '\n';
    }
    if (condition.damage_count > condition.damage.size()) {
        text += fmt::format("{}: {} more faults\n", name, condition.damage_count - condition.damage.size());
    }
    if (check.problems > most_told) {
        text += fmt::format("{}: {} more records with problems\n", name, check.problems - most_told);
    }
    text += name + ": " + condition.summary();
    if (reader.kind() == daemon::RecordKind::coincidences) {
        text += fmt::format(" ({} prompt, {} delayed)", check.prompts, condition.records - check.prompts);
    }
    text +=
        fmt::format("\n{}: payload crc32c {:08x} sha256 {}\n", name, condition.payload_crc, digest.text());
    const bool clean = condition.state == daemon::FileState::complete && check.problems == 0;
    verdict.status = clean ? ok : has_problems;
    verdict.kind = reader.kind();
    verdict.records = condition.records;
    verdict.prompts = check.prompts;
    return verdict;
}

Verdict verify_any(const std::filesystem::path& file, SharedProgress& progress) {
    Verdict verdict;
    try {
        return verify_file(file, progress);
    } catch (const daemon::NotListMode& error) {
        verdict.status = not_list_mode;
        verdict.text = error.what();
    } catch (const std::system_error& error) {
        verdict.status = io_failure;
        verdict.text = error.what();
    }
    verdict.text += '\n';
    return verdict;
}

std::uint64_t bytes_of(const std::vector<std::filesystem::path>& files) {
    std::uint64_t sum = 0;
    for (const auto& file : files) {
        std::error_code failed;
        const std::uint64_t bytes = std::filesystem::file_size(file, failed);
        if (!failed) sum += bytes;
    }
    return sum;
}

// What run.json says must be what the files hold.
int verify_run(const std::filesystem::path& directory, const Totals& totals) {
    std::string why;
    const auto run = run_json(directory, why);
    if (run.is_null()) {
        std::cout << why << '\n';
        return has_problems;
    }
    int status = ok;
    const auto problem = [&](const std::string& what) {
        std::cout << directory.string() << "/run.json: " << what << '\n';
        status = has_problems;
    };
    if (run.value("state", nlohmann::json()) != "complete") {
        problem("the run's state is " + run.value("state", nlohmann::json("unknown")).dump() +
                ", expected \"complete\"");
    }
    if (!run.contains("ledger")) return status;
    const auto compare = [&](const char* counter, std::uint64_t found) {
        const nlohmann::json::json_pointer at(std::string("/ledger") + counter);
        if (!run.contains(at)) {
            problem(std::string("the ledger has no ") + counter);
        } else if (run[at] != found) {
            problem(std::string("the ledger's ") + counter + " is " + run[at].dump() + ", the files hold " +
                    std::to_string(found));
        }
    };
    compare("/pairs/written", totals.pairs);
    const auto write_failed = "/ledger/pairs/write_failed"_json_pointer;
    if (run.contains(write_failed) && run[write_failed] == 0) {
        compare("/pairs/prompts_found", totals.prompts);
        compare("/pairs/delayeds_found", totals.pairs - totals.prompts);
    }
    if (totals.singles) compare("/saved_singles/written", *totals.singles);
    return status;
}

int verify_target(const std::filesystem::path& target) {
    std::vector<std::filesystem::path> files;
    try {
        files = listmode_files(target);
    } catch (const daemon::NotListMode& error) {
        std::cout << error.what() << '\n';
        return not_list_mode;
    }
    int status = ok;
    Totals totals;
    {
        SharedProgress progress("verifying " + target.filename().string(), bytes_of(files));
        // The parts of a run side by side: a digest keeps one core busy.
        InOrder<Verdict> verdicts([&](const Verdict& verdict) {
            std::cout << verdict.text << std::flush;
            status = std::max(status, verdict.status);
            totals.add(verdict.kind, verdict.records, verdict.prompts);
        });
        for (const auto& file : files)
            verdicts.add([&file, &progress] { return verify_any(file, progress); });
        verdicts.finish();
    }
    if (std::filesystem::is_directory(target)) status = std::max(status, verify_run(target, totals));
    return status;
}

}  // namespace

int verify(const std::vector<std::filesystem::path>& targets) {
    int status = ok;
    for (const auto& target : targets)
        status = std::max(status, verify_target(target));
    return status;
}

}  // namespace petacq::petlm
