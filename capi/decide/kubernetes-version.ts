import type { OSImageStreams } from '../../machineconfig/os-image-streams.ts';

/** Minor versions that a kubelet may be older than the API server (Kubernetes, "Version Skew Policy"). */
const MOST_MINORS_OLDER = 3;

/** A version of Kubernetes as far as the skew policy goes. */
interface Minor {
  readonly major: number;
  readonly minor: number;
}

function minorOf(version: string): Minor | undefined {
  const [, major, minor] = /^v?(\d+)\.(\d+)\.\d+/.exec(version) ?? [];
  return major === undefined || minor === undefined
    ? undefined
    : { major: Number(major), minor: Number(minor) };
}

/**
 * @param kubelet the version that a kubelet is to have. @param server that of the API server.
 * @returns why the skew policy doesn't allow it; undefined where it does.
 */
export function skewProblem(kubelet: string, server: string): string | undefined {
  const [of, to] = [minorOf(kubelet), minorOf(server)];
  if (of === undefined) return `${JSON.stringify(kubelet)} is no version of Kubernetes such as v1.35.1`;
  if (to === undefined) return `the version of the API server, ${JSON.stringify(server)}, can't be read`;
  if (of.major !== to.major || of.minor > to.minor)
    return `a kubelet ${kubelet} is newer than the API server, which is ${server}; upgrade the control plane first`;
  if (to.minor - of.minor > MOST_MINORS_OLDER)
    return `a kubelet ${kubelet} is more than ${MOST_MINORS_OLDER} minor versions older than the API server, which is ${server}`;
  return undefined;
}

/**
 * @param streams undefined where the cluster has no such ConfigMap.
 * @returns the name of the stream of OS images with that version of Kubernetes: the version, or the same without its v.
 */
export function streamOfVersion(version: string, streams: OSImageStreams | undefined): string | undefined {
  const names = [version, version.replace(/^v/, '')];
  return names.find((name) => streams !== undefined && Object.hasOwn(streams, name));
}

/** @returns whether a stream's name is a version of Kubernetes, as Cluster API's versions name streams. */
export function isVersion(stream: string | undefined): boolean {
  return stream !== undefined && /^v?\d+\.\d+\.\d+$/.test(stream);
}

/** @returns whether two texts are the same version, with or without v. */
export function isSameVersion(a: string | undefined, b: string): boolean {
  return a !== undefined && a.replace(/^v/, '') === b.replace(/^v/, '');
}
