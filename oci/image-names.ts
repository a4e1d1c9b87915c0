/**
 * How images, registries and what mirrors replace are named: the grammar of distribution/reference (regexp.go,
 * normalize.go) and of distribution-spec ("Pulling manifests"). Kinds have these patterns in their CRDs, so they are
 * RE2's as well as JavaScript's.
 */

const LABEL = '[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?';
const DOMAIN = `${LABEL}(?:\\.${LABEL})*`;
const HOST = `(?:${DOMAIN}|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?`;
const PART = '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*';
const REPOSITORY = `${PART}(?:/${PART})*`;
const TAG = '[A-Za-z0-9_][A-Za-z0-9._-]{0,127}';
const DIGEST = 'sha256:[a-f0-9]{64}';
const SCOPE = `${DOMAIN}(?::[0-9]+)?(?:/${PART})*`;
/** A host that no short name can be: what it names needs no completion. */
const FULL_SCOPE = `(?:${LABEL}(?:\\.${LABEL})+|localhost)(?::[0-9]+)?(?:/${PART})*`;

/** Patterns of whole texts. */
export const imageNames = {
  /** `host[:port]`, where an IPv6 address stands in brackets. */
  host: new RegExp(`^${HOST}$`),
  repository: new RegExp(`^${REPOSITORY}$`),
  tag: new RegExp(`^${TAG}$`),
  digest: new RegExp(`^${DIGEST}$`),
  /** `host[:port]/repository@sha256:…` */
  byDigest: new RegExp(`^${HOST}/${REPOSITORY}@${DIGEST}$`),
  /** `host[:port]/repository:tag` */
  byTag: new RegExp(`^${HOST}/${REPOSITORY}:${TAG}$`),
  /** `host[:port][/repository]`: what can be a mirror (openshift/api, ImageMirror). */
  mirror: new RegExp(`^${SCOPE}$`),
  /** The same or `*.domain`: what is mirrored, blocked or insecure. */
  scope: new RegExp(`^(?:\\*(?:\\.${LABEL})+|${SCOPE})$`),
  /** `*.domain`, or `host[:port][/repository][:tag][@digest]`: what has to be signed (openshift/api, ImageScope). */
  policyScope: new RegExp(`^(?:\\*(?:\\.${LABEL})+|${FULL_SCOPE}(?::${TAG})?(?:@${DIGEST})?)$`),
  /** `host[:port][/repository]` with a full host: what a signature claims (openshift/api, IdentityRepositoryPrefix). */
  identity: new RegExp(`^${FULL_SCOPE}$`),
} as const;

/**
 * @param host the first part of a name.
 * @returns whether it is a host. A word without dot, colon or capital letter begins a repository of docker.io
 *   (splitDockerDomain).
 */
export function isHostPart(host: string): boolean {
  return host === 'localhost' || /[.:A-Z]/.test(host);
}

/**
 * Docker Hub keeps its own images in the namespace `library`, which their names may leave out
 * (containers-registries.conf(5), "Normalization of docker.io references").
 *
 * @param name `host[:port]/repository`. @returns the name with the namespace; any other as it is.
 */
export function withLibrary(name: string): string {
  return name.replace(/^docker\.io\/(?=[^/]*$)/, 'docker.io/library/');
}

/**
 * @param text `host[:port]/repository`.
 * @returns whether containers/image pulls from it. Names that it would complete or normalize are rejected (ParseNamed).
 */
export function isFullName(text: string): boolean {
  const [host = '', ...path] = text.split('/');
  return (
    isHostPart(host) &&
    host !== 'index.docker.io' &&
    withLibrary(text) === text &&
    imageNames.host.test(host) &&
    imageNames.repository.test(path.join('/'))
  );
}
