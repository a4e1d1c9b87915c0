import type { DigestedPullspec } from '../../../api/references.ts';
import type { PullOptions } from '../image-tool/image-tool.ts';
import type { RunOsCommand } from '../os-command.ts';
import { transaction } from './transaction.ts';

/** A whole operating system over a slow line. */
const TIMEOUT_MS = 3_600_000;

/**
 * `rpm-ostree rebase`: pulls an image and stages it, with the packages that are layered on the booted one. It refuses an
 * image that is the next boot already.
 *
 * @throws OsCommandError
 */
export function rpmOstreeRebase(
  run: RunOsCommand,
  image: DigestedPullspec,
  { mustBeSigned, signal }: PullOptions,
): Promise<void> {
  const command = ['rpm-ostree', 'rebase', imageReference(image, mustBeSigned)] as const;
  return transaction(run, command, { timeoutMs: TIMEOUT_MS, signal });
}

/** @returns how rpm-ostree names an image: signature check, transport, name. */
export function imageReference(image: DigestedPullspec, mustBeSigned: boolean): string {
  return mustBeSigned ? `ostree-image-signed:docker://${image}` : `ostree-unverified-registry:${image}`;
}
