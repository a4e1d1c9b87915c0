import type { Resource } from './config.ts';
import { whyNotHash } from './contents.ts';
import { parseDataUrl } from './data-url.ts';
import type { Report } from './report.ts';

/** The minor version of spec 3 that a scheme came with (Ignition, config/v3_N/types/url.go). */
const SCHEMES: ReadonlyMap<string, number> = new Map([
  ['http', 0],
  ['https', 0],
  ['tftp', 0],
  ['s3', 0],
  ['data', 0],
  ['gs', 2],
  ['arn', 4],
]);

/**
 * Checks configs, certificates and key files that Ignition itself fetches at first boot; nothing here reads them.
 *
 * @param minor the version of spec 3 that the config is of.
 * @param required whether Ignition demands a source; otherwise an empty one is none.
 */
export function checkReference(
  resource: Resource,
  path: string,
  {
    minor,
    required,
    report,
  }: { readonly minor: number; readonly required: boolean; readonly report: Report },
): void {
  const { source = '', httpHeaders = [] } = resource;
  const why = source === '' && !required ? undefined : whyNotUrl(source, minor);
  if (why !== undefined) report.problem(`${path}.source`, why, 'a URL that Ignition can fetch');
  checkEncoding(resource, path, report);
  if (httpHeaders.length > 0 && !/^https?:/i.test(source)) {
    report.problem(`${path}.httpHeaders`, 'are for http and https alone', 'no HTTP headers');
  }
}

/** Checks how a resource is compressed, and the form of its verification hash. */
export function checkEncoding(
  { compression = '', verification }: Resource,
  path: string,
  report: Report,
): void {
  if (compression !== '' && compression !== 'gzip') {
    report.problem(`${path}.compression`, 'is not a known compression', '"gzip", or none');
  }
  const why = verification?.hash === undefined ? undefined : whyNotHash(verification.hash);
  if (why !== undefined) {
    report.problem(`${path}.verification.hash`, why, 'sha256-<64 digits> or sha512-<128 digits>');
  }
}

/**
 * @returns in words what is wrong with a URL by Go's net/url and Ignition's own rules; never the URL, which may be a
 * secret.
 */
function whyNotUrl(source: string, minor: number): string | undefined {
  const [, schemeText = '', rest = ''] = /^([a-z][a-z0-9+.-]*):(.*)$/is.exec(source) ?? [];
  const scheme = schemeText.toLowerCase();
  const since = SCHEMES.get(scheme);
  if (since === undefined) return 'is missing or has an unknown scheme';
  if (since > minor) return `has the scheme ${scheme}, which version 3.${minor}.0 does not have`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are exactly what must not be there
  if (/[\x00-\x1f\x7f]/.test(source)) return 'has a control character';
  if (scheme === 'data') {
    const url = parseDataUrl(source);
    return typeof url === 'string' ? url : undefined;
  }
  const [address = '', query = ''] = rest.split(/[?#]/, 2);
  if (!isAddress(address)) return 'is not a valid URL';
  if (scheme === 'arn' && !isArn(address)) return 'is not the ARN of an object in S3';
  const isVersioned = scheme === 's3' || scheme === 'arn';
  if (isVersioned && new URLSearchParams(query).get('versionId') === '') return 'has an empty versionId';
  return undefined;
}

/** What follows the scheme: without a slash at its beginning it is opaque (net/url, Parse). */
function isAddress(address: string): boolean {
  if (!address.startsWith('/')) return true;
  const [, , authority = '', ...path] = address.startsWith('//') ? address.split('/') : ['', '', '', address];
  const host = authority.slice(authority.lastIndexOf('@') + 1);
  return (
    /^(?:\[[0-9A-Za-z:.%_~-]*\]|[^\s%`{|}\\^[\]/@:]*)(?::\d*)?$/.test(host) &&
    !/%(?![0-9a-f]{2})/i.test(path.join('/'))
  );
}

/** `arn:partition:s3:region:account:bucket/key`, or an access point with a key. */
function isArn(address: string): boolean {
  const [, service, , , ...resource] = address.split(':');
  const parts = address.split('/').length;
  const isAccessPoint = resource.join(':').startsWith('accesspoint/');
  return service === 's3' && resource.length > 0 && parts >= (isAccessPoint ? 3 : 2);
}
