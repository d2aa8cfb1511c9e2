"""Key columns shared by the tables, so that one name has one type and one meaning everywhere."""

from jumpboard.artefacts.tables import Column

DATASET = Column("dataset", "string", "-", "name of the data set in config/datasets.yaml", key=True)
ARCH = Column("arch", "string", "-", "name of the net under `nets` in the config", key=True)
DEPTH = Column("depth", "int64", "blocks", "number L of residual blocks", key=True)
WIDTH = Column("width", "int64", "units", "width N of the net (resnet: channels of its first stage)", key=True)
SAMPLES = Column("samples", "int64", "samples", "number M of training samples", key=True)
SEED = Column("seed", "int64", "-", "seed of initial weights, order and augmentation", key=True)
CHECKPOINT = Column(
    "checkpoint", "string", "-", "moment in training: init, step_<n>, loss_<x>, best_validation or final", key=True
)
SPLIT = Column("split", "string", "-", "train, validation, test or fresh", key=True)
SITE = Column("site", "int64", "blocks", "insertion site 0..L: number of blocks before it", key=True)
DIRECTION = Column("direction", "string", "-", "steepest, or a control: random, orthogonal, shuffled", key=True)
JUMPBOARD_KIND = Column(
    "jumpboard",
    "string",
    "-",
    "train: direction from all training samples, step from some; population: from the first half of the fresh ones,"
    " whose other half is measured; none where there is no jumpboard",
    key=True,
)
ARM = Column("arm", "string", "-", "what was trained, and from where; the table says which there are", key=True)
ROUTE = Column("route", "string", "-", "the paper's bound: A or B", key=True)
LOSS = Column("loss", "string", "-", "brier, or cross_entropy clipped at ln(classes) + 2", key=True)

CELL = (DATASET, ARCH, DEPTH, WIDTH, SAMPLES)
