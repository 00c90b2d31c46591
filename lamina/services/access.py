"""Lets one other user pass through the folders above the files it needs, without changing anybody else's rights.

It adds an entry to each folder's access list (POSIX ACL), in the kernel's format, so the program `setfacl` is not
needed. Only root needs this, because Postgres refuses to run as root.
"""

from __future__ import annotations

import os
import stat
import struct
from pathlib import Path

from lamina.services.own_processes import Owner
from view_algebra.errors import LaminaError

_ACL = "system.posix_acl_access"
_USER_OBJ, _USER, _GROUP_OBJ, _GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
_NOBODY = 0xFFFFFFFF

FILES_OF_A_HOME = {"jars", "prepare.lock", "services.lock"}
"""Every LAMINA_HOME in use has at least one of these names."""

_PASS = 0o1
_READ = 0o4


def let_through(owner: Owner, folder: Path, *, whole: Path | None = None) -> None:
    """Lets `owner` pass through `folder` and all folders above it, and read everything in the folder `whole`, if any.

    Raises LaminaError if the file system keeps no access lists.
    """
    for path in (*reversed(folder.parents), folder):
        if not _may(owner, path, _PASS):
            _grant(path, owner)
    if whole is not None and not all(_may(owner, path, _READ) for path in (whole, *whole.iterdir())):
        for path in (whole, *whole.rglob("*")):  # the folder was installed under a umask of 077
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | (0o055 if path.stat().st_mode & stat.S_IXUSR else 0o044))


def keep_private(folder: Path, *, passing: Owner | None = None) -> None:
    """Makes a folder of ours unreadable to everybody else. Creates it if it is missing.

    Users who were let through can still pass, and so can `passing`, if that user could before. Raises LaminaError for a
    folder that is not ours: with /tmp as LAMINA_HOME, nobody else could work there any more.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.geteuid():
        return
    _refuse_foreign_folder(folder)
    if passing is not None and _may(passing, folder, _PASS):
        _grant(folder, passing)
    if not hasattr(os, "listxattr") or _ACL not in os.listxattr(folder):
        if folder.stat().st_mode & 0o077:
            folder.chmod(0o700)
        return
    entries = _entries(folder)
    if any(rights for tag, rights, _ in entries if tag in (_GROUP_OBJ, _OTHER)):
        _write(folder, [(tag, 0 if tag in (_GROUP_OBJ, _OTHER) else rights, who) for tag, rights, who in entries])


def _refuse_foreign_folder(folder: Path) -> None:
    """Raises LaminaError for a folder that is open to others and is not empty, but holds nothing of ours."""
    if any(rights for tag, rights, _ in _entries(folder) if tag in (_GROUP_OBJ, _OTHER)):
        entries = sorted(entry.name for entry in folder.iterdir() if entry.name != "lost+found")
        if entries and not FILES_OF_A_HOME & set(entries):
            raise LaminaError(
                f"{folder} is not a folder of Lamina's own",
                evidence=f"Others may use it, and it holds {', '.join(entries[:3])}{', …' if entries[3:] else ''}:"
                " Lamina would shut them out, since raw records are kept there.",
                way_out=f"Set LAMINA_HOME to a folder for it alone, such as {folder / 'lamina'}.",
            )


def _may(owner: Owner, path: Path, right: int) -> bool:
    """True if the mode bits, or an entry of ours, give the owner this right."""
    status = path.stat()
    if status.st_uid == owner.uid:
        return bool(status.st_mode >> 6 & right)
    entries = _entries(path)
    rights_of_owner = [rights for tag, rights, who in entries if tag == _USER and who == owner.uid]
    others = [rights for tag, rights, _ in entries if tag == _OTHER]
    mask = [rights for tag, rights, _ in entries if tag == _MASK]
    return bool(rights_of_owner[0] & mask[0] & right) if rights_of_owner else bool(others[0] & right)


def _entries(path: Path) -> list[tuple[int, int, int]]:
    """The access list as (tag, rights, id): Linux' posix_acl_xattr.h, little-endian, after a version."""
    if _ACL in os.listxattr(path):
        return list(struct.iter_unpack("<HHI", os.getxattr(path, _ACL)[4:]))
    mode = stat.S_IMODE(path.stat().st_mode)
    return [(_USER_OBJ, mode >> 6 & 7, _NOBODY), (_GROUP_OBJ, mode >> 3 & 7, _NOBODY), (_OTHER, mode & 7, _NOBODY)]


def _grant(path: Path, owner: Owner) -> None:
    """Adds the right to pass for one user."""
    try:
        others = [entry for entry in _entries(path) if (entry[0], entry[2]) != (_USER, owner.uid)]
        _write(path, [*others, (_USER, _PASS, owner.uid)])
    except OSError as error:
        raise LaminaError(
            f"Postgres refuses to run as root, and the user it runs as instead cannot pass through {path}",
            evidence=f"An entry in the folder's access list could not be made: {error}",
            way_out=f"Set LAMINA_HOME to a folder that every user can reach, or `chmod o+x {path}`, or run as an "
            "ordinary user.",
        ) from error


def _write(path: Path, entries: list[tuple[int, int, int]]) -> None:
    """Writes an access list. Its mask is derived from the other entries."""
    entries = [entry for entry in entries if entry[0] != _MASK]
    mask = 0
    for tag, rights, _ in entries:
        mask |= rights if tag in {_USER, _GROUP_OBJ, _GROUP} else 0
    entries.append((_MASK, mask, _NOBODY))
    packed = b"".join(struct.pack("<HHI", *entry) for entry in sorted(entries, key=lambda entry: (entry[0], entry[2])))
    os.setxattr(path, _ACL, struct.pack("<I", 2) + packed)
