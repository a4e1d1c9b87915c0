import { by } from '../api/order.ts';
import { type Digest, hexOf } from '../api/references.ts';
import { PROVENANCE_TYPE } from '../builder/attest/slsa-statement.ts';
import { canonicalJson } from '../machineconfig/canonical-json.ts';

/** Names what externalParameters mean here; docs/how-to/release.md says it in words. */
const BUILD_TYPE = 'https://shale.dev/build-types/release/v1';
const BUILDER_ID = 'https://shale.dev/make-release';

/** A thing by its digest. */
export interface Named {
  readonly name: string;
  readonly digest: Digest;
}

/** What a release was made from and what came of it. */
export interface ReleaseFacts {
  readonly version: string;
  /** The commit of the sources; undefined outside of a git checkout. */
  readonly revision: string | undefined;
  /** Each file of the release, its image and its chart. */
  readonly products: readonly Named[];
  /** What else went in: base images, Node, the lock file. */
  readonly materials: readonly Named[];
  /** Platforms whose image has the programs compiled. */
  readonly compiledFor: readonly string[];
  /** Platforms whose command line is compiled. */
  readonly cliCompiledFor: readonly string[];
}

/**
 * An in-toto statement (v1) with SLSA's provenance (v1). It has no invocation and no times: the same release has the
 * same statement, no matter who makes it.
 *
 * @returns JSON in its canonical form.
 */
export function releaseStatement(facts: ReleaseFacts): string {
  const source =
    facts.revision === undefined ? [] : [{ name: 'source', digest: { gitCommit: facts.revision } }];
  return canonicalJson({
    _type: 'https://in-toto.io/Statement/v1',
    subject: facts.products.toSorted(by(({ name }) => name)).map(resource),
    predicateType: PROVENANCE_TYPE,
    predicate: {
      buildDefinition: {
        buildType: BUILD_TYPE,
        externalParameters: { version: facts.version },
        internalParameters: {
          compiledFor: [...facts.compiledFor].sort(),
          cliCompiledFor: [...facts.cliCompiledFor].sort(),
        },
        resolvedDependencies: [...source, ...facts.materials.toSorted(by(({ name }) => name)).map(resource)],
      },
      runDetails: { builder: { id: BUILDER_ID } },
    },
  });
}

function resource({ name, digest }: Named) {
  return { name, digest: { sha256: hexOf(digest) } };
}
