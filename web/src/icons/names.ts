// Icons that are proposed where one is chosen; any other name of a set can be typed.

export const ICON_NAMES: readonly string[] = [
  "ac_unit", "add", "agriculture", "air", "arrow_back", "arrow_forward", "arrow_outward", "battery_full", "bolt", "close", "cloud", "co2",
  "compress", "dashboard", "delete", "device_thermostat", "devices", "directions_car", "done", "download", "edit", "electric_meter", "error",
  "factory", "gas_meter", "home", "info", "lightbulb", "local_fire_department", "local_shipping", "lock", "lock_open", "mdi:battery-high",
  "mdi:engine", "mdi:fan", "mdi:gauge", "mdi:leaf", "mdi:lightbulb-on", "mdi:meter-electric", "mdi:molecule-co2", "mdi:pump", "mdi:radioactive",
  "mdi:thermometer", "mdi:transmission-tower", "mdi:valve", "mdi:water-percent", "mdi:weather-windy", "notifications", "pause", "person", "place",
  "play_arrow", "power_settings_new", "public", "refresh", "remove", "router", "schedule", "search", "send", "sensors", "settings", "show_chart",
  "solar_power", "speed", "stop", "thermostat", "touch_app", "upload", "vibration", "visibility", "volume_off", "volume_up", "warehouse", "warning",
  "water_drop", "waves", "wb_sunny", "wifi", "wind_power",
];
