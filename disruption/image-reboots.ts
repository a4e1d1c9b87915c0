/** What a node's OS backend reports of applying images. */
interface LiveHost {
  readonly name: string;
  /** Whether an image can be applied to the running system. Absent where it can. */
  readonly appliesLive?: boolean;
}

/**
 * Whether each new image takes a reboot on a host, whatever the change asks. The node daemon and `shale plan` decide by
 * this function.
 *
 * @param osBackend undefined where the node has not reported it.
 * @returns why, as a clause; undefined where images can be applied live.
 */
export function imageRebootsBecause(osBackend: LiveHost | undefined): string | undefined {
  if (osBackend?.appliesLive !== false) return undefined;
  return `${osBackend.name} keeps deployments in composefs on this host, where no image can be applied live`;
}
