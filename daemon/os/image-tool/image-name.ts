import { type DigestedPullspec, DigestedPullspecSchema } from '../../../api/references.ts';

/**
 * The image by digest that a tool means when it tells the name it pulled and the digest it got.
 *
 * @param name `host/repository`, perhaps with tag, digest or both. @param digest what was found there.
 * @returns nothing when the name has no host, as local images have none.
 */
export function digestedImage(name: string, digest: string | undefined): DigestedPullspec | undefined {
  const at = name.indexOf('@');
  const named = at < 0 ? name : name.slice(0, at);
  const slash = named.lastIndexOf('/');
  const colon = named.indexOf(':', slash);
  const repository = slash >= 0 && colon >= 0 ? named.slice(0, colon) : named;
  const found = at < 0 ? digest : name.slice(at + 1);
  const parsed = DigestedPullspecSchema.safeParse(`${repository}@${found}`);
  return parsed.success ? (parsed.data as DigestedPullspec) : undefined;
}
