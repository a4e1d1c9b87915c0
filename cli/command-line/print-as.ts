import { isScalar, Scalar, visit } from 'yaml';
import type { z } from 'zod';
import { escapedSource, isVisible } from '../../api/visible-text.ts';
import { kubectlDocument } from './kubectl-yaml.ts';
import { print } from './output.ts';

/** Values as text for programs, which people read as well: the values are exact, and every character can be seen. */

/** @param indent absent: in one line. */
function jsonText(value: unknown, indent?: number): string {
  return escapedSource(JSON.stringify(value, undefined, indent));
}

/**
 * @returns a YAML document. Strings with characters that a reader can't see are double-quoted, where YAML has escapes
 * (YAML 1.2, 5.7).
 */
export function yamlText(value: unknown): string {
  const document = kubectlDocument(value);
  visit(document, {
    Scalar(_, node) {
      if (typeof node.value === 'string' && !isVisible(node.value)) node.type = Scalar.QUOTE_DOUBLE;
    },
    Pair(_, { key }) {
      if (isScalar(key) && typeof key.value === 'string' && !isVisible(key.value))
        key.type = Scalar.QUOTE_DOUBLE;
    },
  });
  return escapedSource(document.toString());
}

/**
 * Prints a value for programs. Scripts depend on it: fields may be added, but never renamed or removed.
 *
 * @param format `json` or `yaml`.
 * @param schema the format, of which docs/reference/cli.md documents each field.
 * @throws {ZodError} when the value doesn't match the schema, rather than passing it to a script.
 */
export function printAs(format: string, schema: z.ZodType, value: unknown): void {
  const checked = schema.parse(value);
  print(format === 'json' ? jsonText(checked, 2) : yamlText(checked));
}
