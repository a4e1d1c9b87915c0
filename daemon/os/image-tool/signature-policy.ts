import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { ignoreMissing } from '../../tree/tree-entry.ts';

const POLICY_FILE = 'etc/containers/policy.json';

/** containers-policy.json(5), as far as it says what holds for images that nothing else is said of. */
const PolicySchema = z.object({ default: z.array(z.object({ type: z.string() })) });

/** A host's signature policy can't be read: what it lets in isn't known. */
export class SignaturePolicyError extends Error {
  override readonly name = 'SignaturePolicyError';
}

/**
 * Whether a host lets in nothing that it can't check. Both image tools obey the policy anyway; told that signatures are
 * demanded, they also refuse to go on when the policy has been opened meanwhile.
 *
 * @param root the running root. @throws SignaturePolicyError
 */
export async function demandsSignatures(root: string): Promise<boolean> {
  const text = await readFile(path.join(root, POLICY_FILE), 'utf8').catch(ignoreMissing);
  return text !== undefined && policyDemandsSignatures(text);
}

/** @param text of a policy.json. @throws SignaturePolicyError */
export function policyDemandsSignatures(text: string): boolean {
  try {
    return PolicySchema.parse(JSON.parse(text)).default.every(
      ({ type }) => type !== 'insecureAcceptAnything',
    );
  } catch (cause) {
    throw new SignaturePolicyError(`/${POLICY_FILE}: expected {"default": [{"type": "…"}]}`, { cause });
  }
}
