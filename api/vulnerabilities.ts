import { z } from 'zod';
import { Timestamp } from './object.ts';

/** How bad a vulnerability is, the worst first. `unknown`: the scanner had no rating. */
export const SEVERITIES = ['critical', 'high', 'medium', 'low', 'negligible', 'unknown'] as const;
export type Severity = (typeof SEVERITIES)[number];

/** What a limit can be. */
export const LEAST_SEVERITIES = ['critical', 'high', 'medium', 'low'] as const;
export type LeastSeverity = (typeof LEAST_SEVERITIES)[number];

/**
 * @returns whether a severity reaches a limit. A vulnerability that nobody has rated may be of any severity: it reaches
 *   the lowest limit alone, because most of those that are new have no rating yet.
 */
export function reachesSeverity(severity: Severity, least: LeastSeverity): boolean {
  if (severity === 'unknown') return least === 'low';
  return SEVERITIES.indexOf(severity) <= SEVERITIES.indexOf(least);
}

/** The number of vulnerabilities by severity; a severity without any is absent. */
export type SeverityCounts = { readonly [Of in Severity]?: number };

/** @returns whether any of them reaches a limit. */
export function hasSeverity(counts: SeverityCounts, least: LeastSeverity): boolean {
  return SEVERITIES.some((severity) => (counts[severity] ?? 0) > 0 && reachesSeverity(severity, least));
}

/** @returns such as `1 critical, 3 high`; `none` where there are none. */
export function formatCounts(counts: SeverityCounts): string {
  const parts = SEVERITIES.flatMap((severity) => {
    const count = counts[severity] ?? 0;
    return count === 0 ? [] : [`${count} ${severity}`];
  });
  return parts.length === 0 ? 'none' : parts.join(', ');
}

const Counts = z.object(
  Object.fromEntries(SEVERITIES.map((severity) => [severity, z.int().min(0).exactOptional()])) as Record<
    Severity,
    z.ZodExactOptional<z.ZodInt>
  >,
);

/** Vulnerabilities that a status names: every watch reads whole objects. */
export const MOST_NAMED_VULNERABILITIES = 20;
/** Pairs of base images that a status has. */
export const MOST_COMPARED_BASES = 20;
/** Of an id and a package's name; the longest known have some sixty. */
export const LONGEST_VULNERABILITY_NAME = 256;

const name = z.string().max(LONGEST_VULNERABILITY_NAME);

/** What one base image brings and fixes in the place of another, as a build's status has it. */
export const BaseVulnerabilities = z.object({
  from: z.string().max(447).describe('The base image, by digest, that nodes run.'),
  to: z.string().max(447).describe('The base image of the build, by digest.'),
  result: z
    .enum(['Compared', 'NoReport'])
    .describe('NoReport: one of the two base images, or both, have no report that can be used.'),
  message: z
    .string()
    .max(1024)
    .describe('Which reports were compared, and what of it is in doubt; or which one is missing.'),
  checkedAt: Timestamp.describe('When the builder looked for reports.'),
  brought: Counts.exactOptional().describe(
    'Vulnerabilities that only the base image of the build has, by severity. Absent without reports.',
  ),
  fixed: Counts.exactOptional().describe(
    'Vulnerabilities that only the base image that nodes run has, by severity. Absent without reports.',
  ),
  worst: z
    .array(
      z.object({
        id: name.describe('Such as CVE-2026-1234.'),
        severity: z.enum(SEVERITIES).describe('As its report rates it.'),
        package: name.describe('The package that has it, the first by name.'),
      }),
    )
    .max(MOST_NAMED_VULNERABILITIES)
    .exactOptional()
    .describe(
      `The first ${MOST_NAMED_VULNERABILITIES} that the base image of the build brings, the worst first.`,
    ),
});
export type BaseVulnerabilities = z.infer<typeof BaseVulnerabilities>;
