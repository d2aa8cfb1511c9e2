"""The timm model itself, with given weights."""

from collections.abc import Mapping

from torch import Tensor, nn

from jumpboard.nets.timm_net import TimmNet


def plain_timm(net: TimmNet, leaves: Mapping[str, Tensor]) -> nn.Module:
    """A module with the leaves of one member, in evaluation mode."""
    import timm

    options = {"img_size": net.input_shape[1:]} if net.model.startswith(("vit", "deit", "test_vit", "mixer")) else {}
    module: nn.Module = timm.create_model(net.model, num_classes=net.classes, in_chans=net.input_shape[0], **options)
    left = module.load_state_dict({name: leaf.clone() for name, leaf in leaves.items()}, strict=False)
    assert not left.unexpected_keys
    assert all(name.endswith("num_batches_tracked") for name in left.missing_keys)
    return module.to(next(iter(leaves.values())).dtype).eval()
