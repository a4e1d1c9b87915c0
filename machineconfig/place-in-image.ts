/**
 * Where a path of a rendered config can live when an image delivers it.
 */
export type PathPlace =
  /** Goes into the layer as it is, under the path given here (`/lib/x` is `/usr/lib/x` on every host with a merged /usr). */
  | { readonly kind: 'image'; readonly path: string }
  /** Belongs to the running host, not to the image: created at boot by a tmpfiles.d line. */
  | { readonly kind: 'state' }
  | { readonly kind: 'refused'; readonly why: string };

/** Paths whose content an ostree or bootc host keeps across images (ostree "Adapting existing systems"; bootc "Filesystem"). */
const STATE_ROOTS = [
  '/var',
  '/home',
  '/root',
  '/opt',
  '/usr/local',
  '/srv',
  '/mnt',
  '/run',
  '/tmp',
  '/media',
];

/** Top-level links of a merged /usr: a directory in the layer would replace the link and hide the whole of /usr/lib. */
const MERGED_USR = ['/bin', '/sbin', '/lib', '/lib32', '/lib64'];

const IMAGE_ROOTS = ['/etc', '/usr'];

/** What the OS tools alone may write: a file there would damage the deployment that carries it. */
const FORBIDDEN = [
  '/usr/etc',
  '/usr/lib/ostree',
  '/usr/lib/modules',
  '/etc/passwd',
  '/etc/shadow',
  '/etc/group',
  '/etc/gshadow',
];

/**
 * Decides how an image delivers a path.
 *
 * @param path absolute and normalised, as the renderer leaves it.
 */
export function placeInImage(path: string): PathPlace {
  const within = (root: string) => path === root || path.startsWith(`${root}/`);
  const forbidden = FORBIDDEN.find(within);
  if (forbidden !== undefined)
    return { kind: 'refused', why: `${forbidden} is managed by the operating system` };
  if (STATE_ROOTS.some(within)) return { kind: 'state' };
  const merged = MERGED_USR.find(within);
  if (merged !== undefined) return { kind: 'image', path: `/usr${path}` };
  if (IMAGE_ROOTS.some((root) => path.startsWith(`${root}/`))) return { kind: 'image', path };
  return {
    kind: 'refused',
    why: `an image can only carry files under ${IMAGE_ROOTS.join(' and ')}, and create files under ${STATE_ROOTS.join(', ')}`,
  };
}
