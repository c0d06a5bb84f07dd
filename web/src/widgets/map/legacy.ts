// Maps of old dashboards: their settings and datasources as those of today.

import { list, number, object, text, type Json } from "@/dashboard/model";

/** An old function of the same place as a pattern. */
function written(settings: Json, show: string, useFunction: string, pattern: string, body: string, shown: boolean): Json {
  const isShown = typeof settings[show] === "boolean" ? settings[show] : shown;
  return { show: isShown, type: settings[useFunction] === true ? "function" : "pattern", pattern: settings[pattern], patternFunction: settings[body] };
}

function color(settings: Json, useFunction: string, constant: string, body: string, otherwise: string): Json {
  return { type: settings[useFunction] === true ? "function" : "constant", color: text(settings[constant]) ?? otherwise, colorFunction: settings[body] };
}

function tooltip(settings: Json, names: [show: string, useFunction: string, pattern: string, body: string, trigger: string, autoclose: string], shown: boolean, tags: unknown): Json {
  const [show, useFunction, pattern, body, trigger, autoclose] = names;
  return {
    ...written(settings, show, useFunction, pattern, body, shown),
    trigger: settings[trigger],
    autoclose: settings[autoclose],
    tagActions: tags,
  };
}

const ALL = ["add", "edit", "move", "remove"];

function sourceOf(source: Json): Json {
  return {
    dsType: source["type"] === "device" || source["type"] === "function" ? source["type"] : "entity",
    dsLabel: source["name"],
    dsEntityAliasId: source["entityAliasId"] ?? source["deviceAliasId"],
    dsDeviceId: source["deviceId"],
    dsFilterId: source["filterId"],
  };
}

function keyOf(source: Json, name: string): unknown {
  return list(source["dataKeys"]).find((key) => object(key)["label"] === name) ?? list(source["dataKeys"]).find((key) => object(key)["name"] === name);
}

function marker(settings: Json): Json {
  const constant = color(settings, "useColorFunction", "color", "colorFunction", "#FE7569");
  const hasImage = settings["useMarkerImageFunction"] === true || text(settings["markerImage"]) !== undefined;
  const size = number(settings["markerImageSize"]) ?? 34;
  return {
    markerType: hasImage ? "image" : "shape",
    markerShape: { shape: "markerShape1", size, color: constant },
    markerImage: {
      type: settings["useMarkerImageFunction"] === true ? "function" : "image",
      image: settings["markerImage"],
      imageSize: size,
      imageFunction: settings["markerImageFunction"],
      images: settings["markerImages"],
    },
    markerOffsetX: settings["markerOffsetX"],
    markerOffsetY: settings["markerOffsetY"],
    positionFunction: settings["posFunction"],
    label: written(settings, "showLabel", "useLabelFunction", "label", "labelFunction", true),
    markerClustering: {
      enable: settings["useClusterMarkers"],
      maxZoom: settings["maxZoom"],
      maxClusterRadius: settings["maxClusterRadius"],
    },
  };
}

function shape(settings: Json, word: "Polygon" | "Circle", fillWord: string, tags: unknown, click: unknown): Json {
  const low = word.toLowerCase();
  return {
    fillColor: color(settings, `use${fillWord}Function`, fillWord.charAt(0).toLowerCase() + fillWord.slice(1), `${fillWord.charAt(0).toLowerCase()}${fillWord.slice(1)}Function`, "#3388ff"),
    fillOpacity: number(settings[word === "Polygon" ? "polygonOpacity" : "circleFillColorOpacity"]) ?? 0.2,
    strokeColor: color(settings, `use${word}StrokeColorFunction`, `${low}StrokeColor`, `${low}StrokeColorFunction`, "#3388ff"),
    strokeOpacity: settings[`${low}StrokeOpacity`],
    strokeWeight: settings[`${low}StrokeWeight`],
    label: written(settings, `show${word}Label`, `use${word}LabelFunction`, `${low}Label`, `${low}LabelFunction`, false),
    tooltip: tooltip(
      settings,
      [`show${word}Tooltip`, `use${word}TooltipFunction`, `${low}TooltipPattern`, `${low}TooltipFunction`, `show${word}TooltipAction`, `autoClose${word}Tooltip`],
      false,
      tags,
    ),
    click,
    edit: { enabledActions: settings[`editable${word}`] === true ? ALL : [] },
  };
}

function tiles(settings: Json, name: string): Json {
  const provider = text(settings["provider"]) ?? (/google/.test(name) ? "google-map" : /here/.test(name) ? "here" : /tencent/.test(name) ? "tencent-map" : "openstreet-map");
  if (provider === "google-map" || provider === "tencent-map") {
    return { provider: provider.replace("-map", ""), layerType: settings["gmDefaultMapType"] ?? settings["tmDefaultMapType"] };
  }
  if (provider === "here") {
    return { provider: "here", layerType: String(settings["mapProviderHere"] ?? "").replace("HERE.", "HEREv3."), apiKey: object(settings["credentials"])["apiKey"] };
  }
  return settings["useCustomProvider"] === true ? { provider: "custom", tileUrl: settings["customProviderTileUrl"] } : { provider: "openstreet", layerType: settings["mapProvider"] };
}

function trip(settings: Json, isAnimated: boolean): Json {
  const path = color(settings, "useColorFunction", "color", "colorFunction", "#1976d3");
  return {
    showMarker: true,
    rotateMarker: isAnimated,
    offsetAngle: settings["rotationAngle"],
    showPath: true,
    pathStrokeWeight: settings["strokeWeight"] ?? 2,
    pathStrokeColor: path,
    usePathDecorator: settings["usePolylineDecorator"],
    pathDecoratorSymbolSize: settings["decoratorSymbolSize"],
    ...(settings["useDecoratorCustomColor"] === true ? { pathDecoratorSymbolColor: settings["decoratorCustomColor"] ?? "#000" } : {}),
    showPoints: settings["showPoints"],
    pointSize: settings["pointSize"],
    pointColor: color(settings, "useColorPointFunction", "pointColor", "colorPointFunction", "#1976d3"),
    ...(isAnimated && settings["markerImage"] === undefined ? { markerShape: { shape: "tripMarkerShape2", color: path } } : {}),
  };
}

/** Returns the settings of an old map as those of a map of today. */
export function convertOldMap(name: string, config: Json): Json {
  const settings = object(config["settings"]);
  const actions = object(config["actions"]);
  const isImage = (settings["provider"] ?? (/image_map/.test(name) ? "image-map" : undefined)) === "image-map";
  const isAnimated = name === "maps_v2.test";
  const isTrip = isAnimated || /route_map/.test(name);
  const [xName, yName] = isImage
    ? [text(settings["xPosKeyName"]) ?? "xPos", text(settings["yPosKeyName"]) ?? "yPos"]
    : [text(settings["latKeyName"]) ?? "latitude", text(settings["lngKeyName"]) ?? "longitude"];
  const tags = actions["tooltipAction"];
  const first = (source: string): unknown => list(actions[source])[0];
  const sources = list(config["datasources"]).map(object);
  const points = sources.flatMap((source): Json[] => {
    const [xKey, yKey] = [keyOf(source, xName), keyOf(source, yName)];
    const names: [string, string, string, string, string, string] = ["showTooltip", "useTooltipFunction", "tooltipPattern", "tooltipFunction", "showTooltipAction", "autocloseTooltip"];
    return xKey === undefined || yKey === undefined
      ? []
      : [
          {
            ...sourceOf(source),
            additionalDataKeys: [...list(source["dataKeys"]), ...list(source["latestDataKeys"])],
            xKey,
            yKey,
            ...marker(settings),
            tooltip: { ...tooltip(settings, names, true, tags), offsetX: settings["tooltipOffsetX"], offsetY: settings["tooltipOffsetY"] },
            click: first("markerClick"),
            edit: { enabledActions: settings["draggableMarker"] === true ? ALL : [] },
            ...(isTrip ? trip(settings, isAnimated) : {}),
          },
        ];
  });
  const shapes = (word: "Polygon" | "Circle", fillWord: string, key: string): Json[] =>
    settings[`show${word}`] === true
      ? sources.flatMap((source) => {
          const found = keyOf(source, text(settings[`${word.toLowerCase()}KeyName`]) ?? "perimeter");
          return found === undefined ? [] : [{ ...sourceOf(source), additionalDataKeys: source["dataKeys"], [key]: found, ...shape(settings, word, fillWord, tags, first(`${word.toLowerCase()}Click`)) }];
        })
      : [];
  const zoomActions = [
    ...(settings["disableScrollZooming"] === true ? [] : ["scroll"]),
    ...(settings["disableDoubleClickZooming"] === true ? [] : ["doubleClick"]),
    ...(settings["disableZoomControl"] === true ? [] : ["controlButtons"]),
  ];
  return {
    mapType: isImage ? "image" : "geoMap",
    layers: [tiles(settings, name)],
    imageSource:
      text(settings["imageEntityAlias"]) === undefined
        ? { sourceType: "image", url: settings["mapImageUrl"] }
        : { sourceType: "entityKey", url: settings["mapImageUrl"], entityAliasId: settings["imageEntityAlias"], entityKey: { type: "attribute", name: settings["imageUrlAttribute"] } },
    [isTrip ? "trips" : "markers"]: points,
    polygons: shapes("Polygon", "PolygonColor", "polygonKey"),
    circles: shapes("Circle", "CircleFillColor", "circleKey"),
    zoomActions,
    fitMapBounds: settings["fitMapBounds"],
    useDefaultCenterPosition: settings["useDefaultCenterPosition"],
    defaultCenterPosition: settings["defaultCenterPosition"],
    defaultZoomLevel: settings["defaultZoomLevel"],
    mapPageSize: settings["mapPageSize"],
    tripTimeline: { showTimelineControl: isAnimated, timeStep: settings["normalizationStep"], speedOptions: [1, 5, 10, 15, 25] },
  };
}

/** Whether a map without layers draws one of a source: not before somebody has chosen whose data it has. */
export function drawsLayer(source: Json): boolean {
  return source["type"] === "function" || text(source["entityAliasId"]) !== undefined || text(source["deviceId"]) !== undefined;
}

/** Returns the layers of a map that has none, from the datasources that were chosen for it. */
export function defaultLayers(name: string, config: Json): Json {
  const isTrip = /^(trip|route)_map$/.test(name);
  const names = name === "image_map" ? [["xPos", "x"], ["yPos", "y"]] : [["latitude", "lat"], ["longitude", "lon", "lng"]];
  const layers = list(config["datasources"]).map(object).filter(drawsLayer).map((source): Json => {
    const [xKey, yKey] = names.map((all) => {
      const chosen = all.map((one) => keyOf(source, one)).find((key) => key !== undefined);
      // Devices report their place as telemetry or as an attribute.
      return chosen ?? (isTrip ? ["timeseries"] : ["attribute", "timeseries"]).map((type) => ({ type, name: all[0], label: all[0] }));
    });
    return { ...sourceOf(source), xKey, yKey, additionalDataKeys: source["dataKeys"] };
  });
  return { [isTrip ? "trips" : "markers"]: layers, ...(name === "trip_map" ? { tripTimeline: { showTimelineControl: true, speedOptions: [1, 5, 10, 15, 25] } } : {}) };
}
