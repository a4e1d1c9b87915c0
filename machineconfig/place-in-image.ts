/**
 * Where a path of a rendered config can live when an image delivers it.
 */
export type PathPlace =
  /**
   * Goes into the layer as it is, under the path given here (`/lib/x` is `/usr/lib/x` on every host with a merged
   * /usr).
   */
  | { readonly kind: 'image'; readonly path: string }
  /** Belongs to the running host, not to the image: created at boot by a tmpfiles.d line. */
  | { readonly kind: 'state' }
  | { readonly kind: 'refused'; readonly why: string };

/**
 * Paths whose content an ostree or bootc host keeps across images (ostree "Adapting existing systems"; bootc
 * "Filesystem").
 */
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
 * Links that every image-based host has, by the place that they lead to: those of ostree ("Adapting existing systems",
 * and rpm-ostree's rootfs of the filesystem layout), of a merged /usr, and of systemd (tmpfiles.d/var.conf and
 * legacy.conf). Paths below the second name are also below the first one.
 */
const LINKS: readonly (readonly [link: string, place: string])[] = [
  ['/home', '/var/home'],
  ['/root', '/var/roothome'],
  ['/opt', '/var/opt'],
  ['/srv', '/var/srv'],
  ['/mnt', '/var/mnt'],
  ['/usr/local', '/var/usrlocal'],
  ['/media', '/run/media'],
  ['/var/run', '/run'],
  ['/var/lock', '/run/lock'],
  ...MERGED_USR.map((link) => [link, `/usr${link}`] as const),
];

/**
 * @returns the one name of a path among those that are the same place on every image-based host: `/var/home/x` of
 * `/home/x`.
 */
export function realPlace(path: string): string {
  const [link, place] = LINKS.find(([from]) => isWithin(path, from)) ?? ['', ''];
  return `${place}${path.slice(link.length)}`;
}

function isWithin(path: string, root: string): boolean {
  return path.startsWith(root) && (path.length === root.length || path[root.length] === '/');
}

/**
 * Decides how an image delivers a path.
 *
 * @param path absolute and normalised, as the renderer leaves it.
 */
export function placeInImage(path: string): PathPlace {
  const within = (root: string) => isWithin(path, root);
  const real = realPlace(path);
  const forbidden = FORBIDDEN.find((root) => isWithin(real, root));
  if (forbidden !== undefined)
    return { kind: 'refused', why: `${forbidden} is managed by the operating system` };
  if (STATE_ROOTS.some(within)) return { kind: 'state' };
  if (IMAGE_ROOTS.some((root) => real.startsWith(`${root}/`))) return { kind: 'image', path: real };
  return {
    kind: 'refused',
    why: `an image can only carry files under ${IMAGE_ROOTS.join(' and ')}, and create files under ${STATE_ROOTS.join(', ')}`,
  };
}
