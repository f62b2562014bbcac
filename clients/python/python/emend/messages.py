"""The messages of the wire contract: what calls give and take."""

from ._generated.messages import *  # noqa: F403
from ._message import Message as Message
