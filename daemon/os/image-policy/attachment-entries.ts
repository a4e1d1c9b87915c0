import { parse, stringify } from 'yaml';
import { z } from 'zod';
import { parseReference } from '../../../image/reference.ts';
import { scopesOf } from './signature-policy.ts';

/** A file of registries.d (containers-registries.d(5)). */
export interface RegistriesFile {
  /** Its path, for messages. */
  readonly name: string;
  readonly text: string;
}

const Namespace = z
  .looseObject({ 'use-sigstore-attachments': z.boolean().nullish() })
  .nullable()
  .transform((namespace) => namespace?.['use-sigstore-attachments'] ?? undefined);
const Registries = z
  .looseObject({
    'default-docker': Namespace.nullish(),
    docker: z.record(z.string(), Namespace).nullish(),
  })
  .nullable();

/** Which repositories need an entry so that the signatures beside their images are read. */
export interface AttachmentPlan {
  readonly write: readonly string[];
  /**
   * A file of the admin's has an entry for the repository, which no other file may repeat, and it doesn't enable them.
   */
  readonly blocked: readonly { readonly repository: string; readonly file: string }[];
  /** Files that can't be read: containers/image then pulls nothing at all. */
  readonly invalid: readonly string[];
}

/**
 * Decides where containers/image has to be told that signatures are attached to images. An entry that an admin has
 * already, for the repository or for what it is in, is used as it is.
 *
 * @param files of registries.d without Shale's own, in any order.
 * @param repositories `host/repository`, also of the mirrors: it is the place that is pulled from that counts.
 */
export function planAttachments(
  files: readonly RegistriesFile[],
  repositories: readonly string[],
): AttachmentPlan {
  const settings = new Map<string, { readonly file: string; readonly enabled: boolean | undefined }>();
  const invalid: string[] = [];
  for (const { name, text } of files) {
    const registries = readRegistries(text);
    if (registries === undefined) {
      invalid.push(name);
      continue;
    }
    for (const [scope, enabled] of Object.entries(registries?.docker ?? {}))
      settings.set(scope, { file: name, enabled });
    const fallback = registries?.['default-docker'];
    if (fallback !== undefined) settings.set('', { file: name, enabled: fallback ?? undefined });
  }
  const write: string[] = [];
  const blocked: { repository: string; file: string }[] = [];
  for (const repository of [...new Set(repositories)].sort()) {
    const scopes = scopesOf(parseReference(repository)).flatMap((scope) => settings.get(scope) ?? []);
    if (scopes.find(({ enabled }) => enabled !== undefined)?.enabled === true) continue;
    const exact = settings.get(repository);
    if (exact === undefined) write.push(repository);
    else blocked.push({ repository, file: exact.file });
  }
  return { write, blocked, invalid };
}

/** @returns the content of Shale's own file; undefined where it has none. */
export function formatAttachments(repositories: readonly string[]): string | undefined {
  if (repositories.length === 0) return undefined;
  const entries = repositories.map((repository) => [repository, { 'use-sigstore-attachments': true }]);
  return `# Written by Shale, which replaces it (docs/supply-chain.md).\n${stringify({ docker: Object.fromEntries(entries) as object }, { lineWidth: 0 })}`;
}

function readRegistries(text: string): z.infer<typeof Registries> | undefined {
  try {
    // Go's reader takes yes and on of YAML 1.1 where a field is a boolean.
    return Registries.safeParse(parse(text, { version: '1.1' })).data;
  } catch {
    return undefined;
  }
}
