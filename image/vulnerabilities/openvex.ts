import { z } from 'zod';
import { digestsIn, list, optionalText, shortText } from './fields.ts';
import { parsePackageUrl } from './package-url.ts';
import type { NamedPackage, ReadReport, VexStatement } from './report.ts';

const Identified = z.object({
  '@id': optionalText,
  identifiers: z.object({ purl: optionalText }).nullish(),
  hashes: z.record(z.string(), z.string().max(256)).nullish(),
});
type Identified = z.infer<typeof Identified>;

const Statement = z.object({
  // A text in OpenVEX 0.0.1.
  vulnerability: z.union([
    shortText.min(1).transform((name) => ({ name, aliases: [] as string[] })),
    z.object({ name: shortText.min(1), aliases: list(shortText, 1000) }),
  ]),
  timestamp: optionalText,
  products: list(Identified.extend({ subcomponents: list(Identified, 10_000) }), 10_000),
  status: z.enum(['not_affected', 'affected', 'fixed', 'under_investigation']),
});
type Statement = z.infer<typeof Statement>;

/** OpenVEX specification, "Document". */
const OpenVex = z.object({
  '@context': z.string().regex(/^https:\/\/openvex\.dev\/ns/, { error: 'https://openvex.dev/ns/…' }),
  author: optionalText,
  timestamp: optionalText,
  statements: z.array(Statement).max(100_000),
});

/** @throws ZodError for what is no OpenVEX document. */
export function readOpenVex(json: unknown): ReadReport {
  const { author, timestamp, statements } = OpenVex.parse(json);
  // Of two statements about the same, the later one applies ("Updating Statements with Inherited Data").
  const inTime = statements.toSorted(
    (a, b) => Date.parse(a.timestamp ?? timestamp ?? '') - Date.parse(b.timestamp ?? timestamp ?? '') || 0,
  );
  return {
    format: 'OpenVEX',
    tool: author ?? 'an unnamed author',
    created: timestamp,
    subjects: [],
    notAScanBecause: 'it is VEX and no scan',
    findings: [],
    statements: inTime.flatMap(statementsOf),
  };
}

function statementsOf({
  vulnerability: { name, aliases },
  products,
  status,
}: Statement): readonly VexStatement[] {
  const isAffected = status !== 'not_affected' && status !== 'fixed';
  return products.map((product) => {
    const purl = parsePackageUrl(purlOf(product));
    const hash = Object.entries(product.hashes ?? {}).find(([kind]) => kind === 'sha-256')?.[1];
    const [digest] = digestsIn([
      ...(purl?.type === 'oci' ? [purl.version] : []),
      ...(hash === undefined ? [] : [`sha256:${hash}`]),
    ]);
    const inside = product.subcomponents.map(packageOf);
    const isImage = purl?.type === 'oci' || digest !== undefined;
    return {
      ids: [name, ...aliases],
      status: isAffected ? 'affected' : 'not_affected',
      image: digest !== undefined ? { digest } : purl?.type === 'oci' ? { repository: purl.name } : undefined,
      packages: isImage || inside.length > 0 ? inside : [packageOf(product)],
    };
  });
}

function purlOf({ identifiers, '@id': id }: Identified): string {
  return identifiers?.purl ?? id ?? '';
}

function packageOf(product: Identified): NamedPackage {
  const purl = parsePackageUrl(purlOf(product));
  return { name: purl?.name ?? purlOf(product), version: purl?.version };
}
