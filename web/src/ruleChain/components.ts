// What the server says about the classes of rule nodes.

import { t } from "@/i18n";
import { isRecord, newKey, placed, type ChainNode, type Json } from "./model";

export interface NodeDefinition {
  description: string;
  details?: string;
  inEnabled: boolean;
  outEnabled: boolean;
  relationTypes: string[];
  customRelations: boolean;
  ruleChainNode: boolean;
  defaultConfiguration: unknown;
  configurationSchema?: Json;
}

export interface Component {
  clazz: string;
  name: string;
  type: string;
  clusteringMode: "ENABLED" | "SINGLETON" | "USER_PREFERENCE";
  configurationVersion: number;
  hasQueueName: boolean;
  configurationDescriptor: { nodeDefinition: NodeDefinition };
}

export const CATEGORIES = ["FILTER", "ENRICHMENT", "TRANSFORMATION", "ACTION", "EXTERNAL", "FLOW"] as const;

export const definitionOf = (component: Component | undefined): NodeDefinition | undefined => component?.configurationDescriptor.nodeDefinition;

export function nodeOf(component: Component, x: number, y: number): ChainNode {
  const configuration = structuredClone(component.configurationDescriptor.nodeDefinition.defaultConfiguration ?? {});
  const { clazz, name, configurationVersion } = component;
  const stored = {
    type: clazz,
    name: t(name),
    configurationVersion,
    configuration,
    singletonMode: component.clusteringMode === "SINGLETON",
    debugSettings: { failuresEnabled: false, allEnabled: false },
    additionalInfo: { description: "" },
  };
  return placed({ key: newKey(), stored }, x, y);
}

/** Returns which field holds a node's script in the language that it is set to. */
export function scriptField(configuration: unknown): { field: string; language: "JS" | "TBEL" } | undefined {
  if (!isRecord(configuration)) {
    return undefined;
  }
  const language = configuration["scriptLang"] === "JS" || !("tbelScript" in configuration || "alarmDetailsBuildTbel" in configuration) ? "JS" : "TBEL";
  const field = (language === "JS" ? ["jsScript", "alarmDetailsBuildJs"] : ["tbelScript", "alarmDetailsBuildTbel"]).find((name) => name in configuration);
  return field === undefined ? undefined : { field, language };
}

/** What the script of a class returns, as `/api/ruleChain/testScript` calls it. */
export function scriptTypeOf(clazz: string): string {
  const name = clazz.slice(clazz.lastIndexOf(".") + 1);
  return { TbJsFilterNode: "filter", TbJsSwitchNode: "switch", TbTransformMsgNode: "update", TbMsgGeneratorNode: "generate", TbLogNode: "string" }[name] ?? "json";
}
