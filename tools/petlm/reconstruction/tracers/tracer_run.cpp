#include "tools/petlm/reconstruction/tracers/tracer_run.hpp"

#include <utility>

#include "tools/petlm/base/status.hpp"
#include "tools/petlm/reconstruction/image/positions.hpp"
#include "tools/petlm/reconstruction/image/spurious.hpp"

namespace petacq::tracers {
namespace {

image::Part only_part(const image::Setup& setup) {
    const std::string target = setup.options.target.string();
    if (setup.angles.turns())
        throw petlm::BadInput(target + ": the scanner turned; expected one that stands still");
    image::Parts parts = image::parts_of(setup.source, setup.scanner.rotation, setup.options.bed);
    if (parts.list.size() > 1)
        throw petlm::BadInput(target + ": the bed moved; expected one that stands still");
    return std::move(parts.list.front());
}

}  // namespace

TracerRun::TracerRun(const petlm::ImageOptions& options)
    : setup_(options), part_(only_part(setup_)), lines_(setup_, part_), counts_(setup_) {}

image::MadeImage TracerRun::image(image::Setup& setup, const image::ImageCounts& counts,
                                  const std::string& what) {
    setup.how.end_with_all_lines = true;
    image::MadeImage made =
        make_image(setup, part_, lines_, counts, what, setup.how.max_memory, {}, sensitivity_);
    sensitivity_ = made.look.sensitivity;
    return made;
}

gammas::GammaModel TracerRun::gamma_model(const config::Nuclide& nuclide) const {
    gammas::GammaModel model = image::gamma_model_of(setup_, part_, lines_, counts_.photopeak, nuclide);
    model.gammas.lower = counts_.rules.lower_keV;
    model.gammas.upper = counts_.rules.upper_keV;
    model.policy = counts_.rules.policy;
    return model;
}

corrections::Activity TracerRun::decays(const std::vector<float>& image) {
    return image::decays_of(setup_.how.grid, image, setup_.pool);
}

corrections::Activity TracerRun::found_decays(const image::MadeImage& image) {
    corrections::Activity out = decays(image.look.em.image);
    for (std::size_t i = 0; i < out.of_voxel.size(); ++i)
        out.of_voxel[i] *= image.look.sensitivity[i];
    return out;
}

std::shared_ptr<gammas::SpuriousPairs> TracerRun::spurious(const gammas::GammaModel& model,
                                                           const std::vector<float>& image, double efficiency,
                                                           double prompts) {
    return std::make_shared<gammas::SpuriousPairs>(model, decays(image), efficiency,
                                                   image::found_pairs(setup_, lines_), prompts, setup_.pool);
}

}  // namespace petacq::tracers
