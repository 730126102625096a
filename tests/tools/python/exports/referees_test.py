"""The exports of a frame, reconstructed by code that shares nothing with petlm, make the image of petlm image."""

import unittest

import referees
import scene

MOST_DIFFERENT = 0.02
# Scatter takes most of the time of an image. PETACQ_LONG=1: it is corrected for in every test, and scans in the long form have more
# decays.
SCATTER = () if scene.LONG else ("--scatter", "none")


class Referees(unittest.TestCase):
    def check(self, name: str, file: str = "frame.plm", *options: object) -> None:
        expected = scene.SHORT.image(file, *options)
        grid = referees.Grid(expected.shape, scene.VOXEL_MM)
        found = getattr(referees, name)(scene.SHORT.exported(name, file, *options), grid, scene.ITERATIONS)
        scene.check(self, name, scene.figures(found), scene.figures(expected), MOST_DIFFERENT)

    def test_all_corrections_of_the_frame_were_made(self) -> None:
        scene.SHORT.image("frame.plm")
        self.assertEqual([name for name, made in scene.SHORT.corrections("frame.plm").items() if not made], [])

    def test_castor(self) -> None:
        self.check("castor")

    def test_castor_with_the_time_of_flight(self) -> None:
        expected = scene.SHORT.image("frame.plm", *SCATTER, tof=str(scene.TOF_PS))
        files = scene.SHORT.exported("castor", "frame.plm", *SCATTER, "--tof-resolution-ps", scene.TOF_PS)
        found = referees.castor(files, referees.Grid(expected.shape, scene.VOXEL_MM), scene.ITERATIONS)
        scene.check(self, "castor, TOF", scene.figures(found), scene.figures(expected), MOST_DIFFERENT)

    def test_stir(self) -> None:
        self.check("stir")

    def test_a_phase_with_gaps_between_its_intervals(self) -> None:
        scene.call(scene.SHORT.folder, "petlm", "gate", "data/run", "--output", "gates", "--channel", 1, "--bins", 2)
        self.check("castor", "gates/phase-01.plm", *SCATTER)
        made = scene.SHORT.corrections("gates/phase-01.plm")
        self.assertEqual([name for name in made if not made[name]], ["scatter"] if SCATTER else [])

    def test_pairs_of_other_rules_have_the_randoms_of_their_delayeds_in_both(self) -> None:
        span = ("--from-s", scene.FRAME_S[0], "--to-s", scene.FRAME_S[1])
        scene.call(scene.SHORT.folder, "petlm", "resort", "data/run", "--output", "narrow.plm", "--window-ticks", 400, *span)
        for name in ("castor", "stir"):
            self.check(name, "narrow.plm", "--scatter", "none")
        made = scene.SHORT.corrections("narrow.plm")
        self.assertEqual((made["randoms"], made["pile-up"], made["dead time"]), (True, False, True))


class LongForm(unittest.TestCase):
    """Scanners in the long form."""

    MOST_DIFFERENT = MOST_DIFFERENT if scene.LONG else 0.05

    def check(self, name: str, of: scene.Scene, *options: object, tof_ps: int | None = None) -> None:
        tof = () if tof_ps is None else ("--tof-resolution-ps", tof_ps)
        expected = of.image("frame.plm", *options, *SCATTER, tof="off" if tof_ps is None else str(tof_ps))
        files = of.exported(name, "frame.plm", *options, *SCATTER, *tof)
        found = getattr(referees, name)(files, referees.Grid(expected.shape, scene.VOXEL_MM), scene.ITERATIONS)
        scene.check(self, f"{name} {tof}", scene.figures(found), scene.figures(expected), self.MOST_DIFFERENT)

    def test_castor_with_layers(self) -> None:
        # Each layer has a depth of its own; petlm image takes one for all.
        for tof_ps in (None, scene.TOF_PS):
            self.check("castor", scene.TWO_LAYERS, "--depth-mm", 2.4, tof_ps=tof_ps)

    def test_flat_sides(self) -> None:
        for name in ("castor", "stir"):
            self.check(name, scene.HEXAGON)


if __name__ == "__main__":
    unittest.main()
