/** The tools that Shale can keep a host's operating system by. */
export const BACKENDS = ['bootc', 'rpm-ostree', 'ostree'] as const;
export type BackendName = (typeof BACKENDS)[number];

/** What a host has for keeping its operating system. */
export interface FoundTools {
  /** Whether ostree has booted it (ostree-prepare-root leaves /run/ostree-booted). */
  readonly isBootedByOstree: boolean;
  /** Present where bootc is installed. */
  readonly bootc?: {
    /** Why it can't manage this host; absent where it can. */
    readonly obstacle?: string;
    /** Whether the booted deployment is of an image. */
    readonly isOfImage: boolean;
  };
  readonly hasRpmOstree: boolean;
  readonly hasOstree: boolean;
}

export type BackendChoice =
  | { readonly kind: 'found'; readonly name: BackendName }
  | { readonly kind: 'none'; readonly why: string };

/**
 * Decides what a host's operating system is kept by. bootc comes first where the host is its own; rpm-ostree where it has
 * layered packages, which bootc refuses, or where no image is booted yet; plain ostree where there is neither.
 *
 * @param wanted by the admin; nothing else is tried then.
 * @param forPackages whether it has to install packages: only rpm-ostree can, so it is taken wherever it is.
 */
export function chooseBackend(
  found: FoundTools,
  { wanted, forPackages = false }: { readonly wanted?: BackendName; readonly forPackages?: boolean } = {},
): BackendChoice {
  const { bootc, hasRpmOstree, hasOstree } = found;
  if (bootc?.obstacle !== undefined && !found.isBootedByOstree) return none(`bootc: ${bootc.obstacle}`);
  if (!found.isBootedByOstree) {
    return none('the host was not booted by ostree; expected one of bootc, rpm-ostree or ostree');
  }
  // All three need it: for deployments with given kernel arguments and a merged /etc.
  if (!hasOstree) return none('the program ostree is not installed');
  const canBootc = bootc !== undefined && bootc.obstacle === undefined;
  const usable: Readonly<Record<BackendName, boolean>> = {
    bootc: canBootc,
    'rpm-ostree': hasRpmOstree,
    // Without what brought its deployments, nobody would know of which images they are.
    ostree: wanted === 'ostree' || bootc === undefined,
  };
  const order = bootc?.isOfImage === true && !forPackages ? BACKENDS : RPM_OSTREE_FIRST;
  const name = (wanted === undefined ? order : [wanted]).find((candidate) => usable[candidate]);
  if (name !== undefined) return { kind: 'found', name };
  if (bootc?.obstacle !== undefined) return none(`bootc: ${bootc.obstacle}`);
  return none(`${wanted} is not installed`);
}

const RPM_OSTREE_FIRST = ['rpm-ostree', 'bootc', 'ostree'] as const;

function none(why: string): BackendChoice {
  return { kind: 'none', why };
}
