import type { DigestedPullspec } from '../../../api/references.ts';
import type { PullOptions } from '../image-tool/image-tool.ts';
import type { RunOsCommand } from '../os-command.ts';

/** A whole operating system over a slow line. */
const TIMEOUT_MS = 3_600_000;

/**
 * `bootc switch`: pulls an image and stages it. It does nothing when that image is staged already, or booted and nothing
 * staged.
 *
 * @throws OsCommandError
 */
export async function bootcSwitch(
  run: RunOsCommand,
  image: DigestedPullspec,
  { mustBeSigned, signal }: PullOptions,
): Promise<void> {
  const policy = mustBeSigned ? ['--enforce-container-sigpolicy'] : [];
  await run(['bootc', 'switch', '--quiet', '--transport=registry', ...policy, image], {
    timeoutMs: TIMEOUT_MS,
    signal,
  });
}
