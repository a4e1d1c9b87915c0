/** GOARCH values (golang/go, internal/syslist). */
const ARCHITECTURES = 'amd64|arm64|arm|386|loong64|mips|mips64|mips64le|mipsle|ppc64|ppc64le|riscv64|s390x';

/**
 * Tags that Shale writes: of builds, with an architecture for an image of an index, of engine images, and of records of
 * bases; with digits of a digest where a registry doesn't move tags (steps/recorded-pushes.ts).
 */
const BUILD_TAG = new RegExp(`^[a-z0-9.-]+-[0-9a-f]{32}(-(${ARCHITECTURES}))?(-[0-9a-f]{12})?$`);
/** Of a list of referrers, and of what cosign puts beside an image. */
const DIGEST_TAG = /^sha256-([0-9a-f]{64})(\.[a-z]+)?$/;

/** @returns whether Shale gives images such tags: of a build, of an engine's image, or of the record of a base. */
export function isBuildTag(tag: string): boolean {
  return BUILD_TAG.test(tag) && !DIGEST_TAG.test(tag);
}

/**
 * @returns the digest, in hex, of the image that a tag is about: a list of referrers, or what cosign puts beside it.
 */
export function digestOfTag(tag: string): string | undefined {
  return DIGEST_TAG.exec(tag)?.[1];
}
