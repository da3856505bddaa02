"""Commits on S3: an object is put on condition that there is none of its name.

Moving replaces there, and Arrow has no other way, so the last step of a commit goes through the package
obstore: of two applications that put one name at once the store itself refuses one.

Without credentials in the URI both packages look for them by themselves: in the environment, and where the
machine has a role, there; obstore does not read AWS's files of profiles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from lftj.errors import StateError

if TYPE_CHECKING:
    from obstore.store import ObjectStore

SCHEME = "s3"


class ConditionalPut:
    """Objects of a store, by their full names.

    >>> from obstore.store import MemoryStore
    >>> put = ConditionalPut(MemoryStore())
    >>> put("manifest", b"first"), put("manifest", b"second"), put("manifest", b"first")
    (True, False, True)
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def __call__(self, name: str, data: bytes) -> bool:
        """Put an object; False if there is another one of this name.

        One of the same bytes is this one: what answers a try that is made again, when the first one's answer
        was lost.  Raises OSError where the store can't be reached.
        """
        import obstore
        from obstore.exceptions import AlreadyExistsError, BaseError

        try:
            obstore.put(self._store, name, data, mode="create")
        except AlreadyExistsError:
            return bytes(obstore.get(self._store, name).bytes()) == data
        except BaseError as error:
            raise OSError(str(error).partition("\n")[0]) from None
        return True


def conditional_put(uri: str, shown: str) -> ConditionalPut:
    """For a URI as Arrow takes it: ``s3://key:secret@bucket/path?region=...&endpoint_override=...``.

    The names of objects are those below the bucket.  Raises StateError without obstore.
    """
    try:
        from obstore.store import S3Store
    except ImportError:
        raise StateError(
            f"state path {shown!r}: on S3 two applications could commit at one moment, and both be told that"
            " they did; obstore tells them apart: pip install 'lftj[s3]'"
        ) from None
    parts = urlsplit(uri)
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    config: dict[str, Any] = {}
    if parts.username and parts.password:
        config["access_key_id"] = unquote(parts.username)
        config["secret_access_key"] = unquote(parts.password)
    if "region" in query:
        config["region"] = query["region"]
    if "endpoint_override" in query:
        endpoint = query["endpoint_override"]
        if "://" not in endpoint:
            endpoint = f"{query.get('scheme', 'https')}://{endpoint}"
        config["endpoint"] = endpoint
        config["client_options"] = {"allow_http": endpoint.startswith("http://")}
    return ConditionalPut(S3Store(parts.netloc.rpartition("@")[2], **config))
